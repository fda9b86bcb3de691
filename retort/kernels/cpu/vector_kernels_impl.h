// The bodies behind vector_kernels.h; included once per instruction set with RETORT_ISA defined.  No #pragma
// once.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "retort/kernels/cpu/vector_kernels.h"

namespace retort::kernels::RETORT_ISA {
namespace {

// Loops below are marked ivdep where an output may be an input: element i is read before it is written, and
// no other is.
constexpr int kLanes =
    16;  // partial sums kept apart, so that the compiler may use vectors without reordering

inline float load(const float* p, std::int64_t i) {
  return p[i];
}
inline double load(const double* p, std::int64_t i) {
  return p[i];
}
inline float load(const Bf16* p, std::int64_t i) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(p[i].bits) << 16);
}
inline void store(float* p, std::int64_t i, float x) {
  p[i] = x;
}
inline void store(double* p, std::int64_t i, double x) {
  p[i] = x;
}
inline void store(Bf16* p, std::int64_t i, float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;  // to nearest, ties to even
  p[i].bits = static_cast<std::uint16_t>(x == x ? rounded : 0x7fc0u);
}
inline float round_to(const float*, float x) {
  return x;
}
inline double round_to(const double*, double x) {
  return x;
}
inline float round_to(const Bf16*, float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  return __builtin_bit_cast(float, (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
}

// e^x after Cephes' expf: error below 2 ulp on [-60, 60], clamped outside.  Softmax and sigmoid need no more,
// and what is computed from the result stays clear of denormal numbers, each of which costs a hundred cycles.
// Of a number or of a vector of them; `Words` are their bits.
template <typename Words, typename F>
inline F exponential_of(F x) {
  x = x < -60.0f ? F{} - 60.0f : x;
  x = x > 60.0f ? F{} + 60.0f : x;
  const F shifted =
      x * 1.44269504088896341f + 12582912.0f;  // 1.5 * 2^23: rounds to an integer in the low bits
  const F n = shifted - 12582912.0f;
  const F r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  F p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const Words scale = (__builtin_bit_cast(Words, shifted) << 23) + 0x3f800000u;
  return p * __builtin_bit_cast(F, scale);
}
inline float exponential(float x) {
  return exponential_of<std::uint32_t>(x);
}
inline double exponential(double x) {
  return std::exp(x);
}

template <typename C>
inline C hyperbolic_tangent(C x) {
  return C(1) - C(2) / (C(1) + exponential(C(2) * x));
}

// Activations of a gate: the value, and with its slope.
template <typename C>
struct Silu {
  static C value(C g) { return g / (C(1) + exponential(-g)); }
  static void both(C g, C* value, C* slope) {
    const C sigmoid = C(1) / (C(1) + exponential(-g));
    *value = g * sigmoid;
    *slope = sigmoid * (C(1) + g * (C(1) - sigmoid));
  }
};
template <typename C>
struct GeluTanh {
  static constexpr C kRoot = C(0.7978845608028654), kCube = C(0.044715);  // sqrt(2 / pi)
  static C value(C g) { return C(0.5) * g * (C(1) + hyperbolic_tangent(kRoot * (g + kCube * g * g * g))); }
  static void both(C g, C* value, C* slope) {
    const C t = hyperbolic_tangent(kRoot * (g + kCube * g * g * g));
    *value = C(0.5) * g * (C(1) + t);
    *slope = C(0.5) * (C(1) + t) + C(0.5) * g * (C(1) - t * t) * kRoot * (C(1) + C(3) * kCube * g * g);
  }
};

// x = cap * tanh(x * per_cap).
template <typename C>
inline void bend(C* x, C per_cap, C cap, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) x[i] = cap * hyperbolic_tangent(x[i] * per_cap);
}

template <typename C, typename F>
inline C sum_lanes(std::int64_t count, F term) {
  C lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lanes[l] += term(i + l);
  C sum = 0;
  for (int l = 0; l < kLanes; ++l) sum += lanes[l];
  for (; i < count; ++i) sum += term(i);
  return sum;
}

template <typename C, typename F>
inline C max_lanes(std::int64_t count, F term) {
  C lanes[kLanes];
  for (int l = 0; l < kLanes; ++l) lanes[l] = term(0);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int l = 0; l < kLanes; ++l) {
      const C x = term(i + l);
      lanes[l] = x > lanes[l] ? x : lanes[l];
    }
  C best = lanes[0];
  for (int l = 1; l < kLanes; ++l) best = lanes[l] > best ? lanes[l] : best;
  for (; i < count; ++i) best = term(i) > best ? term(i) : best;
  return best;
}

#include "retort/kernels/cpu/row_kernels_impl.h"

// Need the vectors of the former.
#include "retort/kernels/cpu/loss_kernels_impl.h"

// Needs the exponentials of the former.
#include "retort/kernels/cpu/bf16_tiles_impl.h"
#include "retort/kernels/cpu/product_kernels_impl.h"

template <typename T>
struct Kernels {
  using C = typename ComputeOf<T>::type;

  static void rms_norm_forward(const T* x_ND, const T* w_D, double eps, std::int64_t rows, std::int64_t dim,
                               T* y_ND, C* rstd_N) {
    for (std::int64_t n = 0; n < rows; ++n) {
      const T* x = x_ND + n * dim;
      T* y = y_ND + n * dim;
      const C squares = sum_lanes<C>(dim, [x](std::int64_t i) { return load(x, i) * load(x, i); });
      const C rstd = C(1) / std::sqrt(squares / C(dim) + C(eps));
#pragma GCC ivdep
      for (std::int64_t i = 0; i < dim; ++i) store(y, i, round_to(y, load(x, i) * rstd) * load(w_D, i));
      rstd_N[n] = rstd;
    }
  }

  static void rms_norm_backward(const T* gy_ND, const T* x_ND, const T* w_D, const C* rstd_N,
                                const T* residual_ND, std::int64_t rows, std::int64_t dim, T* gx_ND,
                                C* gw_D) {
    for (std::int64_t n = 0; n < rows; ++n) {
      const T* x = x_ND + n * dim;
      const T* gy = gy_ND + n * dim;
      const T* residual = residual_ND ? residual_ND + n * dim : nullptr;
      T* gx = gx_ND + n * dim;
      const C rstd = rstd_N[n];
      const C dot =
          sum_lanes<C>(dim, [=](std::int64_t i) { return load(gy, i) * load(w_D, i) * load(x, i); });
      const C shrink = dot * rstd * rstd * rstd / C(dim);
#pragma GCC ivdep
      for (std::int64_t i = 0; i < dim; ++i) {
        const C g = load(gy, i), xi = load(x, i);
        gw_D[i] += g * xi * rstd;
        const C part = g * load(w_D, i) * rstd - xi * shrink;
        store(gx, i, residual ? load(residual, i) + part : part);
      }
    }
  }

  static void rope(T* x, const float* cos_NE, const float* sin_NE, std::int64_t rows, std::int64_t stride,
                   std::int64_t heads, std::int64_t head_dim, std::int64_t half, double sign) {
    for (std::int64_t n = 0; n < rows; ++n)
      for (std::int64_t h = 0; h < heads; ++h) {
        T* low = x + n * stride + h * head_dim;
        T* high = low + half;
        const float* cosine = cos_NE + n * half;
        const float* sine = sin_NE + n * half;
#pragma GCC ivdep
        for (std::int64_t i = 0; i < half; ++i) {
          const C a = load(low, i), b = load(high, i), c = cosine[i], s = C(sign) * sine[i];
          store(low, i, a * c - b * s);
          store(high, i, b * c + a * s);
        }
      }
  }

  template <typename Activation>
  static void glu_forward(const T* gate_up_N2I, std::int64_t rows, std::int64_t width, T* out_NI) {
    for (std::int64_t n = 0; n < rows; ++n) {
      const T* gate = gate_up_N2I + n * 2 * width;
      const T* up = gate + width;
      T* out = out_NI + n * width;
#pragma GCC ivdep
      for (std::int64_t i = 0; i < width; ++i)
        store(out, i, round_to(out, Activation::value(load(gate, i))) * load(up, i));
    }
  }

  template <typename Activation>
  static void glu_backward(const T* gout_NI, const T* gate_up_N2I, std::int64_t rows, std::int64_t width,
                           T* grad_N2I, T* out_NI) {
    for (std::int64_t n = 0; n < rows; ++n) {
      const T* gate = gate_up_N2I + n * 2 * width;
      const T* up = gate + width;
      const T* gout = gout_NI + n * width;
      T* grad_gate = grad_N2I + n * 2 * width;
      T* grad_up = grad_gate + width;
      T* out = out_NI + n * width;
#pragma GCC ivdep
      for (std::int64_t i = 0; i < width; ++i) {
        const C g = load(gate, i), u = load(up, i), go = load(gout, i);
        C value, slope;
        Activation::both(g, &value, &slope);
        store(out, i, round_to(out, value) * u);
        store(grad_gate, i, go * u * slope);
        store(grad_up, i, go * value);
      }
    }
  }

  static void swiglu_forward(const T* gate_up_N2I, std::int64_t rows, std::int64_t width, T* out_NI) {
    glu_forward<Silu<C>>(gate_up_N2I, rows, width, out_NI);
  }
  static void geglu_forward(const T* gate_up_N2I, std::int64_t rows, std::int64_t width, T* out_NI) {
    glu_forward<GeluTanh<C>>(gate_up_N2I, rows, width, out_NI);
  }
  static void swiglu_backward(const T* gout_NI, const T* gate_up_N2I, std::int64_t rows, std::int64_t width,
                              T* grad_N2I, T* out_NI) {
    glu_backward<Silu<C>>(gout_NI, gate_up_N2I, rows, width, grad_N2I, out_NI);
  }
  static void geglu_backward(const T* gout_NI, const T* gate_up_N2I, std::int64_t rows, std::int64_t width,
                             T* grad_N2I, T* out_NI) {
    glu_backward<GeluTanh<C>>(gout_NI, gate_up_N2I, rows, width, grad_N2I, out_NI);
  }

  // A row has up to some hundred thousand entries: float lanes are exact enough in a piece, double outside.
  static constexpr std::int64_t kPiece = 4096;
  template <typename F>
  static double sum_pieces(std::int64_t count, F term) {
    double sum = 0;
    for (std::int64_t begin = 0; begin < count; begin += kPiece)
      sum += double(sum_lanes<C>(count - begin < kPiece ? count - begin : kPiece,
                                 [=](std::int64_t i) { return term(begin + i); }));
    return sum;
  }

  template <typename E>
  static RowSum<C> log_sum_of(const E* x, std::int64_t count) {
    C top = C(load(x, 0));
    std::int64_t piece = 0;
    for (std::int64_t begin = 0; begin < count; begin += kPiece) {
      const C here = max_lanes<C>(count - begin < kPiece ? count - begin : kPiece,
                                  [=](std::int64_t i) { return load(x, begin + i); });
      piece = here > top ? begin : piece;
      top = here > top ? here : top;
    }
    std::int64_t index = piece;
    while (index + 1 < count && load(x, index) != top) ++index;
    const double sum = sum_pieces(count, [=](std::int64_t i) { return exponential(load(x, i) - top); });
    return {top, index, double(top) + std::log(sum)};
  }

  static RowSum<C> row_sum(const T* logits_V, std::int64_t vocab) {
    return log_sum_of(logits_V, vocab);
  }

  static RowSum<C> row_sum_without(const T* logits_V, const std::int32_t* ids_K, std::int64_t kept,
                                   std::int64_t vocab, C* copy_V, C* least) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < vocab; ++i) copy_V[i] = load(logits_V, i);
    *least = -max_lanes<C>(vocab, [=](std::int64_t i) { return -copy_V[i]; });
    for (std::int64_t k = 0; k < kept; ++k) copy_V[ids_K[k]] = -C(__builtin_inf());
    if (kept >= vocab) return {-C(__builtin_inf()), 0, -__builtin_inf()};
    return log_sum_of(copy_V, vocab);
  }

  static double row_divergence(const T* student_V, const T* teacher_V, double teacher_log_sum, double gap,
                               std::int64_t vocab) {
    const C normalizer = C(teacher_log_sum), difference = C(gap);
    return sum_pieces(vocab, [=](std::int64_t i) {
      const C s = load(student_V, i), t = load(teacher_V, i);
      return exponential(t - normalizer) * (t - s + difference);
    });
  }

  static void square_sums(const T* s, const T* t, std::int64_t count, double* error, double* teacher) {
    for (std::int64_t begin = 0; begin < count; begin += kPiece) {
      const std::int64_t size = count - begin < kPiece ? count - begin : kPiece;
      const T* sp = s + begin;
      const T* tp = t + begin;
      *error += double(sum_lanes<C>(size, [=](std::int64_t i) {
        const C d = load(sp, i) - load(tp, i);
        return d * d;
      }));
      *teacher += double(sum_lanes<C>(size, [=](std::int64_t i) { return load(tp, i) * load(tp, i); }));
    }
  }

  static void scaled_difference(const T* s, const T* t, double factor, std::int64_t count, T* out) {
    const C f = C(factor);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) store(out, i, f * (load(s, i) - load(t, i)));
  }

  // The first key that row r sees.
  static std::int64_t first_seen(const Scores& of, std::int64_t visible_r, std::int64_t keys) {
    const std::int64_t first = of.window > 0 && visible_r > of.window ? visible_r - of.window : 0;
    return first < keys ? first : keys;
  }

  static void attention_gradients(const C* scores_RM, T* p_RM, T* gradients_RM, const C* lse_R,
                                  const C* delta_R, const Scores& of, std::int64_t rows, std::int64_t keys,
                                  std::int64_t visible) {
    const C factor = C(of.scale), cap = C(of.softcap), per_cap = cap > 0 ? factor / cap : C(0);
    for (std::int64_t r = 0; r < rows; ++r) {
      const C* s = scores_RM + r * keys;
      T* p = p_RM + r * keys;
      T* g = gradients_RM + r * keys;
      const std::int64_t seen = visible + r < keys ? visible + r : keys;
      const std::int64_t first = first_seen(of, visible + r, seen);
      const C lse = lse_R[r], delta = delta_R[r];
      for (std::int64_t i = 0; i < first; ++i) {
        store(p, i, C(0));
        store(g, i, C(0));
      }
      if (cap > 0) {
#pragma GCC ivdep
        for (std::int64_t i = first; i < seen; ++i) {
          const C bent = hyperbolic_tangent(s[i] * per_cap);
          const C probability = exponential(cap * bent - lse);
          store(p, i, probability);
          store(g, i, probability * (load(g, i) - delta) * factor * (C(1) - bent * bent));
        }
      } else {
#pragma GCC ivdep
        for (std::int64_t i = first; i < seen; ++i) {
          const C probability = exponential(s[i] * factor - lse);
          store(p, i, probability);
          store(g, i, probability * (load(g, i) - delta) * factor);
        }
      }
      for (std::int64_t i = seen; i < keys; ++i) {
        store(p, i, C(0));
        store(g, i, C(0));
      }
    }
  }

  static void attention_softmax(C* scores_RM, std::int64_t stride, const Scores& of, std::int64_t rows,
                                std::int64_t keys, std::int64_t visible, C* sum_R, C* lse_R) {
    const C cap = C(of.softcap), factor = cap > 0 ? C(1) : C(of.scale);
    for (std::int64_t r = 0; r < rows; ++r) {
      C* s = scores_RM + r * stride;
      const std::int64_t seen = visible + r < keys ? visible + r : keys;
      const std::int64_t first = first_seen(of, visible + r, seen);
      if (cap > 0) bend(s + first, C(of.scale) / cap, cap, seen - first);
      // Whole vectors; what they hold beside keys that are seen is too small to count.
      const std::int64_t begin = first / kCount * kCount, end = (seen + kCount - 1) / kCount * kCount;
      for (std::int64_t i = begin; i < first; ++i) s[i] = C(-1e20);
      for (std::int64_t i = seen; i < end; ++i) s[i] = C(-1e20);
      const C top = largest_of(s + begin, end - begin) * factor;
      Vector<C> sum = {};
      for (std::int64_t i = begin; i < end; i += kCount) {
        const auto p = exponentials(vector_at(s + i) * factor - top);
        sum += p;
        std::memcpy(s + i, &p, sizeof p);
      }
      sum_R[r] = sum_of<C>(sum);
      lse_R[r] = top + std::log(sum_R[r]);
      for (std::int64_t i = 0; i < first; ++i) s[i] = C(0);
      for (std::int64_t i = seen; i < keys; ++i) s[i] = C(0);
    }
  }

  static constexpr std::int64_t kCount = VectorOf<C>::kCount;
  static C largest_of(const C* x, std::int64_t count) {
    Vector<C> top = vector_at(x);
    for (std::int64_t i = kCount; i < count; i += kCount) {
      const auto v = vector_at(x + i);
      top = v > top ? v : top;
    }
    C best = top[0];
    for (int l = 1; l < kCount; ++l) best = top[l] > best ? top[l] : best;
    return best;
  }

  static VectorKernels<T> table() {
    return {rms_norm_forward,
            rms_norm_backward,
            rope,
            swiglu_forward,
            geglu_forward,
            swiglu_backward,
            geglu_backward,
            LossKernels<T>::logit_losses,
            row_sum,
            row_sum_without,
            row_divergence,
            square_sums,
            scaled_difference,
            attention_gradients,
            RowKernels<T>::attend_pages,
            attention_softmax,
            ProductKernels<C>::product,
            PanelKernels<T>::multiply,
            PanelKernels<T>::pack};
  }
};

void adamw(float* p, const float* g, float* m, float* v, Bf16* copy, const AdamWStep& step,
           std::int64_t count) {
  const float beta1 = float(step.beta1), beta2 = float(step.beta2), scale = float(step.gradient_scale);
  const float rate = float(step.lr / step.correction1), decay = float(1 - step.lr * step.weight_decay);
  const float root = float(1 / std::sqrt(step.correction2)), eps = float(step.eps);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const float gradient = g[i] * scale;
    m[i] = beta1 * m[i] + (1 - beta1) * gradient;
    v[i] = beta2 * v[i] + (1 - beta2) * gradient * gradient;
    p[i] = p[i] * decay - rate * m[i] / (std::sqrt(v[i]) * root + eps);
  }
  if (copy)
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) store(copy, i, p[i]);
}

double sum_of_squares(const float* x, std::int64_t count) {
  return sum_lanes<double>(count, [x](std::int64_t i) { return double(x[i]) * double(x[i]); });
}

}  // namespace

const VectorTables& tables() {
  static const VectorTables kTables{RETORT_ISA_NAME,        Kernels<float>::table(), Kernels<double>::table(),
                                    Kernels<Bf16>::table(), Bf16Tiles::table(),      adamw,
                                    sum_of_squares};
  return kTables;
}

}  // namespace retort::kernels::RETORT_ISA
