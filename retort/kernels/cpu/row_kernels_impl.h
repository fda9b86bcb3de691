// Loops that are bound by what they read: the attention of one token to the pages of its text.
// Part of vector_kernels_impl.h, which includes it in its namespace once per instruction set.  No #pragma
// once.

// Vectors as wide as the processor's own: the compiler keeps wider ones in memory.
#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <typename C>
struct VectorOf {
  typedef C type __attribute__((vector_size(kVectorBytes)));
  static constexpr int kCount = kVectorBytes / static_cast<int>(sizeof(C));
};
template <typename C>
using Vector = typename VectorOf<C>::type;

// As many elements as two vectors hold, in the order in which they are cheap to get.
template <typename C>
struct Two {
  Vector<C> first, second;
};

template <typename C>
inline Vector<C> vector_at(const C* p) {
  Vector<C> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <typename C>
inline Two<C> two_at(const C* p) {
  return {vector_at(p), vector_at(p + VectorOf<C>::kCount)};
}

// A word of 32 bits holds two numbers: those at even places, and those at odd ones, whose bits are a float's
// upper half already.
inline Two<float> two_at(const Bf16* p) {
  Vector<std::uint32_t> words;
  std::memcpy(&words, p, sizeof words);
  const Vector<std::uint32_t> even = words << 16, odd = words & 0xffff0000u;
  return {__builtin_bit_cast(Vector<float>, even), __builtin_bit_cast(Vector<float>, odd)};
}

// Rounded to bfloat16, to nearest, ties to even; what was rounded stands in the upper half.
inline Vector<std::uint32_t> rounded_words(const Vector<float>& v) {
  const auto bits = __builtin_bit_cast(Vector<std::uint32_t>, v);
  const Vector<std::uint32_t> near = bits + 0x7fffu + ((bits >> 16) & 1u);
  return v == v ? near : Vector<std::uint32_t>{} + 0x7fc00000u;
}

// The place among 2 * kCount elements of a lane of the first (0) or second (1) vector.
template <typename T>
inline int place(int which, int lane) {
  if constexpr (sizeof(T) == 2) return 2 * lane + which;
  return which * VectorOf<typename ComputeOf<T>::type>::kCount + lane;
}

// The upper half of the first `kWidth` lanes in place of the lower one.
template <typename C, std::size_t kWidth, std::size_t... kLane>
inline Vector<C> upper_half(const Vector<C>& v, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(v, v, ((kLane + kWidth / 2) % sizeof...(kLane))...);
}

template <typename C, std::size_t kWidth = VectorOf<C>::kCount>
inline C sum_of(const Vector<C>& v) {
  if constexpr (kWidth == 1)
    return v[0];
  else
    return sum_of<C, kWidth / 2>(v +
                                 upper_half<C, kWidth>(v, std::make_index_sequence<VectorOf<C>::kCount>{}));
}

// Four sums, because each addition waits for the last one to its sum.  Weights are asked for a page ahead:
// the processor itself begins anew at each page.  x is in the order of T.
template <typename T, typename C>
inline C dot(const T* w, const C* x, std::int64_t count) {
  constexpr std::int64_t kStep = 2 * VectorOf<C>::kCount, kLine = 64 / sizeof(T), kAhead = 4096 / sizeof(T);
  Vector<C> a = {}, b = {}, c = {}, d = {};
  std::int64_t i = 0;
  for (; i + 2 * kStep <= count; i += 2 * kStep) {
    for (std::int64_t line = 0; line < 2 * kStep; line += kLine) __builtin_prefetch(w + i + kAhead + line);
    const auto w0 = two_at(w + i), w1 = two_at(w + i + kStep);
    const auto x0 = two_at(x + i), x1 = two_at(x + i + kStep);
    a += w0.first * x0.first;
    b += w0.second * x0.second;
    c += w1.first * x1.first;
    d += w1.second * x1.second;
  }
  for (; i + kStep <= count; i += kStep) {
    const auto wi = two_at(w + i);
    const auto xi = two_at(x + i);
    a += wi.first * xi.first;
    b += wi.second * xi.second;
  }
  C sum = sum_of<C>((a + b) + (c + d));
  for (; i < count; ++i) sum += load(w, i) * x[i];
  return sum;
}

template <typename T>
struct RowKernels {
  using C = typename ComputeOf<T>::type;
  static constexpr std::int64_t kStep = 2 * VectorOf<C>::kCount;

  static void arrange(const C* x, std::int64_t count, C* out) {
    std::int64_t i = 0;
    for (; i + kStep <= count; i += kStep)
      for (int which = 0; which < 2; ++which)
        for (int l = 0; l < VectorOf<C>::kCount; ++l)
          out[i + which * VectorOf<C>::kCount + l] = x[i + place<T>(which, l)];
    for (; i < count; ++i) out[i] = x[i];
  }

  // body(first token, its row, tokens) for each piece of the text that lies in one page.
  template <typename Body>
  static void for_pages(const PagedQuery<T>& p, const T* rows, Body body) {
    for (auto m = p.first; m < p.tokens;) {
      const auto page = m / p.page_tokens, place = m - page * p.page_tokens;
      const auto here = p.page_tokens - place, left = p.tokens - m, count = here < left ? here : left;
      body(m - p.first, rows + (p.pages[page] * p.page_tokens + place) * p.stride, count);
      m += count;
    }
  }

  static void attend_pages(const PagedQuery<T>& query, const Scores& of, C* work, T* out_E) {
    const auto head_dim = query.head_dim, tokens = query.tokens - query.first, stride = query.stride;
    C *q = work, *plain = work + head_dim, *p = work + 2 * head_dim;
    const C scale = C(of.scale), cap = C(of.softcap);
    for (std::int64_t i = 0; i < head_dim; ++i) plain[i] = load(query.q_E, i) * scale;
    arrange(plain, head_dim, q);
    for_pages(query, query.k, [&](std::int64_t first, const T* rows, std::int64_t count) {
      for (std::int64_t m = 0; m < count; ++m) p[first + m] = dot(rows + m * stride, q, head_dim);
    });
    if (cap > 0) bend(p, C(1) / cap, cap, tokens);
    const C top = max_lanes<C>(tokens, [p](std::int64_t m) { return p[m]; });
    for (std::int64_t m = 0; m < tokens; ++m) p[m] = exponential(p[m] - top);
    const C total = sum_lanes<C>(tokens, [p](std::int64_t m) { return p[m]; });
    for (std::int64_t m = 0; m < tokens; ++m) p[m] /= total;
    weighted_sum_of_pages(query, p, out_E);
  }

  // out = sum over tokens of p * v.
  static void weighted_sum_of_pages(const PagedQuery<T>& query, const C* p_M, T* out) {
    const auto count = query.head_dim, stride = query.stride;
    std::int64_t i = 0;
    for (; i + kStep <= count; i += kStep) {
      Two<C> sum = {};
      for_pages(query, query.v + i, [&](std::int64_t first, const T* rows, std::int64_t here) {
        for (std::int64_t m = 0; m < here; ++m) {
          const auto row = two_at(rows + m * stride);
          sum.first += p_M[first + m] * row.first;
          sum.second += p_M[first + m] * row.second;
        }
      });
      for (int l = 0; l < VectorOf<C>::kCount; ++l) {
        store(out, i + place<T>(0, l), sum.first[l]);
        store(out, i + place<T>(1, l), sum.second[l]);
      }
    }
    for (; i < count; ++i) {
      C sum = 0;
      for_pages(query, query.v, [&](std::int64_t first, const T* rows, std::int64_t here) {
        for (std::int64_t m = 0; m < here; ++m) sum += p_M[first + m] * load(rows, m * stride + i);
      });
      store(out, i, sum);
    }
  }
};
