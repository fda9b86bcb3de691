// All losses on a row of logits, and their gradient, in one visit: logits are read from memory once, and
// exponentials stay in the cache.  Part of vector_kernels_impl.h, which includes it in its namespace once per
// instruction set.  No #pragma once.

// A row in blocks of two vectors; the last block is filled up with entries too small to count.
template <typename T>
class LogitRow {
 public:
  using C = typename ComputeOf<T>::type;
  static constexpr std::int64_t kBlock = 2 * VectorOf<C>::kCount;

  LogitRow(const T* x, std::int64_t count) : x_(x), full_(count / kBlock), blocks_(blocks_of(count)) {
    for (std::int64_t i = 0; i < kBlock; ++i) store(rest_, i, C(-1e20));
    std::memcpy(rest_, x + full_ * kBlock, static_cast<std::size_t>(count - full_ * kBlock) * sizeof(T));
  }
  static std::int64_t blocks_of(std::int64_t count) { return (count + kBlock - 1) / kBlock; }
  std::int64_t blocks() const { return blocks_; }
  Two<C> at(std::int64_t block) const { return two_at(block < full_ ? x_ + block * kBlock : rest_); }

  C largest() const {
    auto top = at(0);
    for (std::int64_t b = 1; b < blocks_; ++b) {
      const auto x = at(b);
      top.first = x.first > top.first ? x.first : top.first;
      top.second = x.second > top.second ? x.second : top.second;
    }
    C best = top.first[0];
    for (int l = 0; l < VectorOf<C>::kCount; ++l) {
      best = top.first[l] > best ? top.first[l] : best;
      best = top.second[l] > best ? top.second[l] : best;
    }
    return best;
  }

 private:
  const T* x_;
  std::int64_t full_, blocks_;
  T rest_[kBlock];
};

template <typename C>
inline void put(C* p, const Two<C>& x) {
  std::memcpy(p, &x, sizeof x);
}

// Stored in the order of memory again, from that in which two_at reads.
inline void put_row(float* p, const Two<float>& x) {
  put(p, x);
}
inline void put_row(double* p, const Two<double>& x) {
  put(p, x);
}
inline void put_row(Bf16* p, const Two<float>& x) {
  const Vector<std::uint32_t> words =
      (rounded_words(x.first) >> 16) | (rounded_words(x.second) & 0xffff0000u);
  std::memcpy(p, &words, sizeof words);
}

inline Vector<float> exponentials(const Vector<float>& x) {
  return exponential_of<Vector<std::uint32_t>>(x);
}
inline Vector<double> exponentials(Vector<double> x) {
  for (int l = 0; l < VectorOf<double>::kCount; ++l) x[l] = std::exp(x[l]);
  return x;
}

template <typename T>
struct LossKernels {
  using C = typename ComputeOf<T>::type;
  using Row = LogitRow<T>;
  static constexpr std::int64_t kBlock = Row::kBlock;

  // Undivided probabilities of a row at a temperature.
  struct Softmax {
    C factor, top, sum;  // exp(x * factor - top), and their sum
    C log_sum() const { return std::log(sum); }
    Vector<C> shifted(const Vector<C>& x) const { return x * factor - top; }
  };

  // What lies behind the row's end stays zero.
  static Softmax soften(const Row& x, C factor, std::int64_t count, C* p_V) {
    Softmax of{factor, x.largest() * factor, 0};
    Two<C> sum = {};
    for (std::int64_t b = 0; b < x.blocks(); ++b) {
      const auto logits = x.at(b);
      const Two<C> p{exponentials(of.shifted(logits.first)), exponentials(of.shifted(logits.second))};
      put(p_V + b * kBlock, p);
      sum.first += p.first;
      sum.second += p.second;
    }
    for (std::int64_t i = count; i < x.blocks() * kBlock; ++i) p_V[arranged(i)] = 0;
    of.sum = sum_of<C>(sum.first + sum.second);
    return of;
  }

  // The place of element i of a row among exponentials.
  static std::int64_t arranged(std::int64_t i) {
    const auto within = static_cast<int>(i % kBlock);
    for (int which = 0; which < 2; ++which)
      for (int lane = 0; lane < VectorOf<C>::kCount; ++lane)
        if (place<T>(which, lane) == within) return i - within + which * VectorOf<C>::kCount + lane;
    return i;
  }

  // sum p (x - y) for undivided probabilities p of x.
  static C mean_difference(const Row& x, const Softmax& of_x, const Row& y, const Softmax& of_y,
                           const C* p_V) {
    Two<C> sum = {};
    for (std::int64_t b = 0; b < x.blocks(); ++b) {
      const auto a = x.at(b), c = y.at(b), p = two_in(p_V + b * kBlock);
      sum.first += p.first * (of_x.shifted(a.first) - of_y.shifted(c.first));
      sum.second += p.second * (of_x.shifted(a.second) - of_y.shifted(c.second));
    }
    return sum_of<C>(sum.first + sum.second) / of_x.sum;
  }
  static Two<C> two_in(const C* p) { return {vector_at(p), vector_at(p + VectorOf<C>::kCount)}; }

  // KL(x || y) from undivided probabilities of x.
  static C divergence(const Row& x, const Softmax& of_x, const Row& y, const Softmax& of_y, const C* p_V) {
    return mean_difference(x, of_x, y, of_y, p_V) + of_y.log_sum() - of_x.log_sum();
  }

  // One row's memory and what its terms share.
  struct Work {
    const LogitRows<T>& of;
    std::int64_t n;
    C *p_V, *q_V, *g_V;  // of the student, of the teacher, and the sum of the gradients so far
    bool first = true;

    const T* student() const { return of.student_NV + n * of.student_stride; }
    const T* teacher() const { return of.teacher_NK + n * of.teacher_stride; }
    T* gradient() const { return of.grad_NV + n * of.grad_stride; }
  };

  // Adds a p + b (p - r q) to the gradient, for the first `blocks` blocks.
  static void add(Work& w, std::int64_t blocks, C a, C b, C r, const C* p_V, const C* q_V) {
    const auto gradient = [&](const Vector<C>& p, const Vector<C>& q) { return a * p + b * (p - r * q); };
    for (std::int64_t block = 0; block < blocks; ++block) {
      const auto p = two_in(p_V + block * kBlock), q = two_in(q_V + block * kBlock);
      Two<C> g{gradient(p.first, q.first), gradient(p.second, q.second)};
      if (!w.first) {
        const auto before = two_in(w.g_V + block * kBlock);
        g.first += before.first;
        g.second += before.second;
      }
      put(w.g_V + block * kBlock, g);
    }
    const auto all = Row::blocks_of(w.of.vocab);
    if (w.first && blocks < all)
      std::memset(w.g_V + blocks * kBlock, 0, static_cast<std::size_t>((all - blocks) * kBlock) * sizeof(C));
    w.first = false;
  }

  // Adds scale p (log p - log q - kl).
  static void add_reverse(Work& w, const Row& s, const Softmax& of_s, const Row& t, const Softmax& of_t,
                          C scale, C kl) {
    const C shift = of_t.log_sum() - of_s.log_sum() - kl;
    for (std::int64_t block = 0; block < s.blocks(); ++block) {
      const auto x = s.at(block), y = t.at(block), p = two_in(w.p_V + block * kBlock);
      const auto product = [&](const Vector<C>& xs, const Vector<C>& ys, const Vector<C>& ps) {
        return ps * (of_s.shifted(xs) - of_t.shifted(ys) + shift);
      };
      put(w.q_V + block * kBlock,
          Two<C>{product(x.first, y.first, p.first), product(x.second, y.second, p.second)});
    }
    add(w, s.blocks(), scale / of_s.sum, C(0), C(0), w.q_V, w.q_V);
  }

  // KL(teacher || student), or of the two exchanged.
  static double of_divergence(Work& w, const LogitTerm& term, bool exchanged) {
    const auto count = w.of.shared;
    const Row s(w.student(), count), t(w.teacher(), count);
    const C factor = C(1 / term.temperature), scale = C(term.gradient_scale);
    const auto of_s = soften(s, factor, count, w.p_V), of_t = soften(t, factor, count, w.q_V);
    if (exchanged) {
      const C kl = divergence(s, of_s, t, of_t, w.p_V);
      add_reverse(w, s, of_s, t, of_t, scale, kl);
      return double(kl) * term.value_scale;
    }
    const C kl = divergence(t, of_t, s, of_s, w.q_V);
    add(w, s.blocks(), C(0), scale / of_s.sum, of_s.sum / of_t.sum, w.p_V, w.q_V);
    return double(kl) * term.value_scale;
  }

  // Cross-entropy, and with it a divergence of the same distribution.
  static double of_target(Work& w, const LogitTerm& term, const LogitTerm* with, double* with_value) {
    const auto count = w.of.vocab, target = w.of.targets[w.n];
    const Row s(w.student(), count);
    const auto of_s = soften(s, C(1), count, w.p_V);
    const C a = C(term.gradient_scale) / of_s.sum;
    if (with) {
      const Row t(w.teacher(), count);
      const auto of_t = soften(t, C(1), count, w.q_V);
      *with_value = double(divergence(t, of_t, s, of_s, w.q_V)) * with->value_scale;
      add(w, s.blocks(), a, C(with->gradient_scale) / of_s.sum, of_s.sum / of_t.sum, w.p_V, w.q_V);
    } else {
      add(w, s.blocks(), a, C(0), C(0), w.p_V, w.p_V);
    }
    w.g_V[arranged(target)] -= C(term.gradient_scale);
    return double(of_s.log_sum()) - (double(load(w.student(), target)) - double(of_s.top));
  }

  static bool of_one_distribution(const LogitRows<T>& of, const LogitTerm& divergence) {
    return divergence.kind == LogitTermKind::forward_kl && divergence.temperature == 1 &&
           of.shared == of.vocab;
  }

  // No default: the compiler misses a kind that is left out.
  static double of_term(Work& w, const LogitTerm& term) {
    switch (term.kind) {
      case LogitTermKind::cross_entropy:
        return of_target(w, term, nullptr, nullptr);
      case LogitTermKind::forward_kl:
        return of_divergence(w, term, false);
      case LogitTermKind::reverse_kl:
        return of_divergence(w, term, true);
    }
    return std::nan("");
  }

  // Cross-entropy comes first, for a divergence may share its exponentials.
  static void of_row(Work& w, const LogitTerm* terms, int count, double* values) {
    int first = 0, with = 0;
    while (first < count && terms[first].kind != LogitTermKind::cross_entropy) ++first;
    while (with < count && !of_one_distribution(w.of, terms[with])) ++with;
    if (first == count) with = count;
    if (first < count) {
      double value = 0;
      values[first] += of_target(w, terms[first], with < count ? terms + with : nullptr, &value);
      if (with < count) values[with] += value;
    }
    for (int j = 0; j < count; ++j)
      if (j != first && j != with) values[j] += of_term(w, terms[j]);
  }

  static void store_gradient(const Work& w) {
    const auto vocab = w.of.vocab, full = vocab / kBlock;
    T* const out = w.gradient();
    if (w.first) return void(std::memset(out, 0, static_cast<std::size_t>(vocab) * sizeof(T)));
    for (std::int64_t block = 0; block < full; ++block)
      put_row(out + block * kBlock, two_in(w.g_V + block * kBlock));
    for (std::int64_t i = full * kBlock; i < vocab; ++i) store(out, i, w.g_V[arranged(i)]);
  }

  static void logit_losses(const LogitRows<T>& of, std::int64_t rows, const LogitTerm* terms, int count,
                           C* work_3W, double* values) {
    const auto width = Row::blocks_of(of.vocab) * kBlock;
    for (std::int64_t n = 0; n < rows; ++n) {
      Work w{of, n, work_3W, work_3W + width, work_3W + 2 * width};
      if (of.targets[n] < 0) {
        std::memset(w.gradient(), 0, static_cast<std::size_t>(of.vocab) * sizeof(T));
        continue;
      }
      of_row(w, terms, count, values);
      store_gradient(w);
    }
  }
};
