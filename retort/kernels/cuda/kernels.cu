// The operations of ops/ as kernels: what device/ composes of many, each in one pass over its data.
// CUDA C++ of which what is launched is compiled then, for one type of element at a time (compiler.h).
//
// SCALAR_IS_BF16 says which type that is.  Arithmetic is float32, and a result is rounded once.  A thread takes
// kWidth elements at a time: 1, or as many as 16 bytes hold.  A block works on one row unless it says
// otherwise, and has a multiple of 32 threads.  All sums have an order of their own, so a result does not
// depend on which block came first.
//
// All kernels are templates, because of a template only what is asked for is compiled.  shuffle_xor and
// CHECK_ALIGNED come from whoever compiles this.
#include "retort/kernels/cuda/arguments.h"

using namespace retort_kernels;

typedef long long Index;

#if SCALAR_IS_BF16
struct Scalar {
  unsigned short bits;
};
#else
typedef float Scalar;
#endif

constexpr float kLog2E = 1.4426950408889634f;
#define LOWEST (-3.402823466e38f)  // minus infinity less itself would be no number

// To the nearest, ties to even; no number stays none.
__device__ unsigned short float_to_bf16(float x) {
  const unsigned bits = __float_as_uint(x);
  if (x != x) return 0x7fc0;
  return static_cast<unsigned short>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

#if SCALAR_IS_BF16
__device__ float to_float(Scalar x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}
__device__ Scalar rounded(float x) {
  return {float_to_bf16(x)};
}
#else
__device__ float to_float(Scalar x) {
  return x;
}
__device__ Scalar rounded(float x) {
  return x;
}
#endif

// Elements that lie together, in float32.
template <int kWidth>
struct alignas(kWidth * sizeof(Scalar)) Pack {
  Scalar at[kWidth];
};

template <int kWidth>
__device__ void load(const Scalar* from, float (&to)[kWidth]) {
  CHECK_ALIGNED(from, sizeof(Pack<kWidth>));
  const Pack<kWidth> pack = *reinterpret_cast<const Pack<kWidth>*>(from);
  for (int k = 0; k < kWidth; ++k) to[k] = to_float(pack.at[k]);
}
template <int kWidth>
__device__ void store(const float (&from)[kWidth], Scalar* to) {
  Pack<kWidth> pack;
  for (int k = 0; k < kWidth; ++k) pack.at[k] = rounded(from[k]);
  CHECK_ALIGNED(to, sizeof(Pack<kWidth>));
  *reinterpret_cast<Pack<kWidth>*>(to) = pack;
}

// The same of a row that may end within the pack; what is behind its end is `beyond`.
template <int kWidth>
__device__ void load_until(const Scalar* row, Index column, Index end, float beyond, float (&to)[kWidth]) {
  if (column + kWidth <= end) return load<kWidth>(row + column, to);
  for (int k = 0; k < kWidth; ++k) to[k] = column + k < end ? to_float(row[column + k]) : beyond;
}
template <int kWidth>
__device__ void store_until(const float (&from)[kWidth], Scalar* row, Index column, Index end) {
  if (column + kWidth <= end) return store<kWidth>(from, row + column);
  for (int k = 0; k < kWidth; ++k)
    if (column + k < end) row[column + k] = rounded(from[k]);
}

struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Largest {
  __device__ float operator()(float a, float b) const {
    return fmaxf(a, b);
  }
};

// Reduces over the threads of a block; all of them get the results.
template <typename T, int kCount, typename Reduce>
__device__ void reduce_block(T (&x)[kCount], Reduce reduce, T neutral) {
  __shared__ T of_warps[32][kCount];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int i = 0; i < kCount; ++i) {
    for (int offset = 16; offset > 0; offset /= 2) x[i] = reduce(x[i], shuffle_xor(x[i], offset));
    if (lane == 0) of_warps[warp][i] = x[i];
  }
  __syncthreads();
  for (int i = 0; i < kCount; ++i) {
    x[i] = lane < static_cast<int>(blockDim.x) / 32 ? of_warps[lane][i] : neutral;
    for (int offset = 16; offset > 0; offset /= 2) x[i] = reduce(x[i], shuffle_xor(x[i], offset));
  }
  __syncthreads();  // before the next reduction writes
}

__device__ float block_sum(float x) {
  float sum[1] = {x};
  reduce_block(sum, Sum(), 0.0f);
  return sum[0];
}

// What a thread goes through of `count` elements that all blocks share.
__device__ Index first_of_thread() {
  return static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ Index threads_of_grid() {
  return static_cast<Index>(gridDim.x) * blockDim.x;
}

// ---- RMSNorm

template <int kWidth>
__global__ void rms_norm(Scalar* y, float* rstd, const Scalar* x, const Scalar* w, Index dim, float eps) {
  const Index row = blockIdx.x;
  float sum = 0;
  for (Index c = threadIdx.x * kWidth; c < dim; c += blockDim.x * kWidth) {
    float of_x[kWidth];
    load<kWidth>(x + row * dim + c, of_x);
    for (int k = 0; k < kWidth; ++k) sum += of_x[k] * of_x[k];
  }
  const float of_row = 1.0f / sqrtf(block_sum(sum) / static_cast<float>(dim) + eps);
  if (threadIdx.x == 0) rstd[row] = of_row;
  for (Index c = threadIdx.x * kWidth; c < dim; c += blockDim.x * kWidth) {
    float of_x[kWidth], of_w[kWidth];
    load<kWidth>(x + row * dim + c, of_x);
    load<kWidth>(w + c, of_w);
    for (int k = 0; k < kWidth; ++k) of_x[k] = to_float(rounded(of_x[k] * of_row)) * of_w[k];
    store<kWidth>(of_x, y + row * dim + c);
  }
}

// A block takes `rows_of_block` rows after each other, and adds up what they give to the gradient of w.
// Each thread has kPacks packs of columns of its own, so nothing is added by two.
template <int kWidth, int kPacks>
__global__ void __launch_bounds__(512)
rms_norm_backward(Scalar* gx, float* gw_of_blocks, const Scalar* gy, const Scalar* x,
                                  const Scalar* w, const float* rstd, const Scalar* residual, Index rows,
                                  Index dim, Index rows_of_block) {
  const Index first = threadIdx.x * kWidth, step = blockDim.x * kWidth;
  float gw[kPacks][kWidth] = {}, of_w[kPacks][kWidth] = {};
  for (int pack = 0; pack < kPacks; ++pack)
    if (first + pack * step < dim) load<kWidth>(w + first + pack * step, of_w[pack]);
  const Index begin = blockIdx.x * rows_of_block;
  const Index end = begin + rows_of_block < rows ? begin + rows_of_block : rows;
  for (Index row = begin; row < end; ++row) {
    const float of_row = rstd[row];
    float scaled[kPacks][kWidth] = {}, normal[kPacks][kWidth] = {}, sum = 0;
    for (int pack = 0; pack < kPacks; ++pack) {
      const Index at = row * dim + first + pack * step;
      if (first + pack * step >= dim) continue;
      load<kWidth>(gy + at, scaled[pack]);
      load<kWidth>(x + at, normal[pack]);
      for (int k = 0; k < kWidth; ++k) {
        normal[pack][k] *= of_row;
        gw[pack][k] += scaled[pack][k] * normal[pack][k];
        scaled[pack][k] *= of_w[pack][k];
        sum += scaled[pack][k] * normal[pack][k];
      }
    }
    const float mean = block_sum(sum) / static_cast<float>(dim);
    for (int pack = 0; pack < kPacks; ++pack) {
      const Index at = row * dim + first + pack * step;
      if (first + pack * step >= dim) continue;
      float beside[kWidth] = {};
      if (residual) load<kWidth>(residual + at, beside);
      for (int k = 0; k < kWidth; ++k)
        beside[k] += (scaled[pack][k] - normal[pack][k] * mean) * of_row;
      store<kWidth>(beside, gx + at);
    }
  }
  for (int pack = 0; pack < kPacks; ++pack)
    for (int k = 0; k < kWidth; ++k)
      if (first + pack * step < dim) gw_of_blocks[blockIdx.x * dim + first + pack * step + k] = gw[pack][k];
}

// Adds the rows of `parts`, in their order.  A thread has one column.
template <int kWidth>
__global__ void add_rows(float* sum, const float* parts, Index rows, Index dim) {
  const Index column = first_of_thread();
  if (column >= dim) return;
  float total = 0;
  for (Index row = 0; row < rows; ++row) total += parts[row * dim + column];
  sum[column] += total;
}

// ---- Rotary embedding: a thread turns one pair of one head

template <int kWidth>
__global__ void apply_rotary(Scalar* x, const float* cosine, const float* sine, Index rows, Index stride,
                         Index heads, Index head_dim, Index pairs, float sign) {
  const Index count = rows * heads * pairs;
  for (Index i = first_of_thread(); i < count; i += threads_of_grid()) {
    const Index pair = i % pairs, head = i / pairs % heads, row = i / pairs / heads;
    Scalar* a = x + row * stride + head * head_dim + pair;
    Scalar* b = a + pairs;
    const float c = cosine[row * pairs + pair], s = sign * sine[row * pairs + pair];
    const float of_a = to_float(*a), of_b = to_float(*b);
    *a = rounded(of_a * c - of_b * s);
    *b = rounded(of_b * c + of_a * s);
  }
}

// ---- Gates of an MLP

struct Silu {
  __device__ static void of(float x, float& value, float& slope) {
    const float s = 1.0f / (1.0f + expf(-x));
    value = x * s;
    slope = s * (1.0f + x * (1.0f - s));
  }
};

// With tanh in place of the error function.
struct Gelu {
  __device__ static void of(float x, float& value, float& slope) {
    const float a = 0.7978845608028654f, b = 0.044715f;
    const float t = tanhf(a * (x + b * x * x * x));
    value = 0.5f * x * (1.0f + t);
    slope = 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * a * (1.0f + 3.0f * b * x * x);
  }
};

// Rows of `gate_up` hold the gate and behind it what it lets through.
template <int kWidth, typename Gate>
__global__ void glu(Scalar* out, const Scalar* gate_up, Index rows, Index width) {
  const Index packs = width / kWidth;
  for (Index i = first_of_thread(); i < rows * packs; i += threads_of_grid()) {
    const Index row = i / packs, c = i % packs * kWidth;
    float gate[kWidth], up[kWidth], slope;
    load<kWidth>(gate_up + row * 2 * width + c, gate);
    load<kWidth>(gate_up + row * 2 * width + width + c, up);
    for (int k = 0; k < kWidth; ++k) {
      float value;
      Gate::of(gate[k], value, slope);
      up[k] *= value;
    }
    store<kWidth>(up, out + row * width + c);
  }
}

template <int kWidth, typename Gate>
__global__ void glu_backward(Scalar* out, Scalar* gate_up, const Scalar* gout, Index rows, Index width) {
  const Index packs = width / kWidth;
  for (Index i = first_of_thread(); i < rows * packs; i += threads_of_grid()) {
    const Index row = i / packs, c = i % packs * kWidth;
    float gate[kWidth], up[kWidth], g[kWidth], again[kWidth];
    load<kWidth>(gate_up + row * 2 * width + c, gate);
    load<kWidth>(gate_up + row * 2 * width + width + c, up);
    load<kWidth>(gout + row * width + c, g);
    for (int k = 0; k < kWidth; ++k) {
      float value, slope;
      Gate::of(gate[k], value, slope);
      again[k] = value * up[k];
      gate[k] = g[k] * up[k] * slope;
      up[k] = g[k] * value;
    }
    store<kWidth>(again, out + row * width + c);
    store<kWidth>(gate, gate_up + row * 2 * width + c);
    store<kWidth>(up, gate_up + row * 2 * width + width + c);
  }
}

// ---- Losses on logits

// Sums of exponentials relative to the largest values seen so far, and for a divergence the mean of what
// teacher and student differ by, relative to their difference in column 0.
struct TermSums {
  float student, teacher, weighted;
};

__device__ float power(float x, float factor) {
  return exp2f(x * (kLog2E * factor));
}

// Each kind has a case of its own wherever kinds differ; a compiler misses one that is left out.
__device__ bool has_teacher(LogitTermKind kind) {
  switch (kind) {
    case kCrossEntropy: return false;
    case kForwardKl: return true;
    case kReverseKl: break;
  }
  return true;
}

// Whether the mean of the differences is over the teacher's distribution; else it is over the student's.
__device__ bool weighs_by_teacher(LogitTermKind kind) {
  switch (kind) {
    case kCrossEntropy: return false;
    case kForwardKl: return true;
    case kReverseKl: break;
  }
  return false;
}

template <int kTerms>
struct RowSums {
  float largest, largest_of_tokens, largest_of_teacher;
  TermSums of_terms[kTerms];

  // What was summed becomes relative to larger values.
  __device__ void raise(const LogitTerms& terms, float all, float tokens, float teacher) {
    for (int i = 0; i < kTerms; ++i) {
      const float factor = terms.inverse_temperature[i];
      const float student = power(has_teacher(terms.kind[i]) ? largest_of_tokens - tokens : largest - all, factor);
      const float of_teacher = power(largest_of_teacher - teacher, factor);
      of_terms[i].student *= student;
      of_terms[i].teacher *= of_teacher;
      of_terms[i].weighted *= weighs_by_teacher(terms.kind[i]) ? of_teacher : student;
    }
    largest = all, largest_of_tokens = tokens, largest_of_teacher = teacher;
  }
};

template <int kWidth, int kTerms>
__device__ void add_logits(RowSums<kTerms>& sums, const LogitTerms& terms, const float (&s)[kWidth],
                           const float (&t)[kWidth], int columns, int tokens, float offset) {
  float all = sums.largest, of_tokens = sums.largest_of_tokens, teacher = sums.largest_of_teacher;
  for (int k = 0; k < kWidth; ++k) {
    if (k < columns) all = fmaxf(all, s[k]);
    if (k < tokens) of_tokens = fmaxf(of_tokens, s[k]), teacher = fmaxf(teacher, t[k]);
  }
  if (all > sums.largest || of_tokens > sums.largest_of_tokens || teacher > sums.largest_of_teacher)
    sums.raise(terms, all, of_tokens, teacher);
  for (int i = 0; i < kTerms; ++i) {
    TermSums& of = sums.of_terms[i];
    const float factor = terms.inverse_temperature[i];
    if (!has_teacher(terms.kind[i])) {
      for (int k = 0; k < kWidth; ++k)
        if (k < columns) of.student += power(s[k] - all, 1.0f);
      continue;
    }
    for (int k = 0; k < kWidth; ++k) {
      if (k >= tokens) continue;
      const float student = power(s[k] - of_tokens, factor), of_teacher = power(t[k] - teacher, factor);
      of.student += student;
      of.teacher += of_teacher;
      of.weighted += (weighs_by_teacher(terms.kind[i]) ? of_teacher : student) * (t[k] - s[k] - offset);
    }
  }
}

template <int kTerms>
__device__ void combine(RowSums<kTerms>& sums, const LogitTerms& terms) {
  float largest[3] = {sums.largest, sums.largest_of_tokens, sums.largest_of_teacher};
  reduce_block(largest, Largest(), LOWEST);
  sums.raise(terms, largest[0], largest[1], largest[2]);
  float parts[3 * kTerms];
  for (int i = 0; i < kTerms; ++i) {
    parts[3 * i] = sums.of_terms[i].student;
    parts[3 * i + 1] = sums.of_terms[i].teacher;
    parts[3 * i + 2] = sums.of_terms[i].weighted;
  }
  reduce_block(parts, Sum(), 0.0f);
  for (int i = 0; i < kTerms; ++i) sums.of_terms[i] = {parts[3 * i], parts[3 * i + 1], parts[3 * i + 2]};
}

// What the gradient of a term needs beside the sums.
struct TermOfRow {
  float value, log_ratio;  // the loss, and what turns a difference of logits into the log of a ratio
};

template <int kTerms>
__device__ TermOfRow term_of_row(const RowSums<kTerms>& sums, const LogitTerms& terms, int i, float target,
                                 float offset) {
  const TermSums of = sums.of_terms[i];
  const float factor = terms.inverse_temperature[i], log_student = logf(of.student);
  const float apart = sums.largest_of_tokens - sums.largest_of_teacher, log_teacher = logf(of.teacher);
  switch (terms.kind[i]) {
    case kCrossEntropy: return {sums.largest - target + log_student, 0};
    case kForwardKl:
      return {(of.weighted / of.teacher + (offset + apart)) * factor - log_teacher + log_student, 0};
    case kReverseKl: break;
  }
  const float value = (-of.weighted / of.student - (offset + apart)) * factor - log_student + log_teacher;
  return {value, log_teacher - log_student - value};
}

// The gradient of a divergence by a student's logit over the temperature; of a token that both models have.
__device__ float gradient_of_divergence(LogitTermKind kind, const TermSums& of, const TermOfRow& row,
                                        float student_shifted, float teacher_shifted, float factor) {
  const float student = power(student_shifted, factor) / of.student;
  switch (kind) {
    case kCrossEntropy: return 0;
    case kForwardKl: return student - power(teacher_shifted, factor) / of.teacher;
    case kReverseKl: break;
  }
  return student * ((student_shifted - teacher_shifted) * factor + row.log_ratio);
}

template <int kTerms>
__device__ float gradient_of_logit(const RowSums<kTerms>& sums, const LogitTerms& terms,
                                   const TermOfRow (&of_row)[kTerms], float s, float t, bool is_token,
                                   bool is_target) {
  float gradient = 0;
  for (int i = 0; i < kTerms; ++i) {
    const TermSums of = sums.of_terms[i];
    float g = 0;
    if (!has_teacher(terms.kind[i]))
      g = power(s - sums.largest, 1.0f) / of.student - (is_target ? 1.0f : 0.0f);
    else if (is_token)
      g = gradient_of_divergence(terms.kind[i], of, of_row[i], s - sums.largest_of_tokens,
                                 t - sums.largest_of_teacher, terms.inverse_temperature[i]);
    gradient += terms.gradient_scale[i] * g;
  }
  return gradient;
}

// A row is read twice and written once; the gradient may lie in the place of the student's logits.
template <int kWidth, int kTerms>
__global__ void __launch_bounds__(512)
logit_losses(Scalar* gradient, double* values, const Scalar* student, const Scalar* teacher,
                             const Index* targets, LogitRows shape, LogitTerms terms) {
  const Index row = blockIdx.x, target = targets[row], step = blockDim.x * kWidth;
  const Scalar* of_student = student + row * shape.student_stride;
  const Scalar* of_teacher = teacher + row * shape.teacher_stride;
  Scalar* of_gradient = gradient + row * shape.gradient_stride;
  float s[kWidth], t[kWidth] = {};
  if (target < 0) {
    for (Index c = threadIdx.x * kWidth; c < shape.vocab; c += step)
      store_until<kWidth>(t, of_gradient, c, shape.vocab);
    if (threadIdx.x == 0)
      for (int i = 0; i < kTerms; ++i) values[i * shape.rows + row] = 0;
    return;
  }
  // Read before anything is written: all threads meet in the reductions.
  const float of_target = to_float(of_student[target]);
  const float offset = shape.tokens > 0 ? to_float(of_teacher[0]) - to_float(of_student[0]) : 0.0f;
  RowSums<kTerms> sums = {LOWEST, LOWEST, LOWEST, {}};
  const auto left = [&](Index end, Index c) {
    return static_cast<int>(end - c < kWidth ? end - c : static_cast<Index>(kWidth));
  };
  for (Index c = threadIdx.x * kWidth; c < shape.vocab; c += step) {
    load_until<kWidth>(of_student, c, shape.vocab, 0.0f, s);
    if (c < shape.tokens) load_until<kWidth>(of_teacher, c, shape.tokens, 0.0f, t);
    add_logits<kWidth>(sums, terms, s, t, left(shape.vocab, c), left(shape.tokens, c), offset);
  }
  combine(sums, terms);
  TermOfRow of_row[kTerms];
  for (int i = 0; i < kTerms; ++i) of_row[i] = term_of_row(sums, terms, i, of_target, offset);
  if (threadIdx.x == 0)
    for (int i = 0; i < kTerms; ++i) values[i * shape.rows + row] = of_row[i].value * terms.value_scale[i];
  for (Index c = threadIdx.x * kWidth; c < shape.vocab; c += step) {
    load_until<kWidth>(of_student, c, shape.vocab, 0.0f, s);
    if (c < shape.tokens) load_until<kWidth>(of_teacher, c, shape.tokens, 0.0f, t);
    for (int k = 0; k < kWidth; ++k)
      s[k] = gradient_of_logit(sums, terms, of_row, s[k], t[k], c + k < shape.tokens, c + k == target);
    store_until<kWidth>(s, of_gradient, c, shape.vocab);
  }
}

// ---- Losses on hidden states

// The elements that a block of a segment goes through: packs of the blocks of one segment in turn.
struct PartOfSegment {
  Index segment, part, first, end, step;
};
template <int kWidth>
__device__ PartOfSegment part_of_segment(const int* bounds, Index parts, Index dim) {
  const Index segment = blockIdx.x / parts, part = blockIdx.x % parts;
  return {segment, part, bounds[segment] * dim + (part * blockDim.x + threadIdx.x) * kWidth,
          bounds[segment + 1] * dim, parts * blockDim.x * kWidth};
}

// Squares of the differences and of the teacher, of each part of each segment.
template <int kWidth>
__global__ void square_sums(double* error_of_parts, double* teacher_of_parts, const Scalar* student,
                            const Scalar* teacher, const int* bounds, Index parts, Index dim) {
  const PartOfSegment of = part_of_segment<kWidth>(bounds, parts, dim);
  double sums[2] = {0, 0};
  for (Index i = of.first; i < of.end; i += of.step) {
    float s[kWidth], t[kWidth];
    load<kWidth>(student + i, s);
    load<kWidth>(teacher + i, t);
    for (int k = 0; k < kWidth; ++k) {
      const float difference = s[k] - t[k];
      sums[0] += static_cast<double>(difference * difference);
      sums[1] += static_cast<double>(t[k] * t[k]);
    }
  }
  reduce_block(sums, Sum(), 0.0);
  if (threadIdx.x != 0) return;
  error_of_parts[blockIdx.x] = sums[0];
  teacher_of_parts[blockIdx.x] = sums[1];
}

// Every thread adds up the parts of its segment, which are few, in their order.
template <int kWidth>
__global__ void relative_errors(Scalar* gradient, double* values, const double* error_of_parts,
                                const double* teacher_of_parts, const Scalar* student, const Scalar* teacher,
                                const int* bounds, Index parts, Index dim, RelativeErrors by) {
  const PartOfSegment of = part_of_segment<kWidth>(bounds, parts, dim);
  double error = 0, squares = 0;
  for (Index part = 0; part < parts; ++part) {
    error += error_of_parts[of.segment * parts + part];
    squares += teacher_of_parts[of.segment * parts + part];
  }
  const double tokens = bounds[of.segment + 1] - bounds[of.segment];
  const double count = tokens * static_cast<double>(dim), relative = squares / count + by.eps;
  if (of.part == 0 && threadIdx.x == 0) values[of.segment] = tokens / by.blocks / relative * error / count;
  const float factor =
      static_cast<float>(tokens / by.step_tokens / by.blocks / relative * (by.weight * 2) / count);
  for (Index i = of.first; i < of.end; i += of.step) {
    float s[kWidth], t[kWidth];
    load<kWidth>(student + i, s);
    load<kWidth>(teacher + i, t);
    for (int k = 0; k < kWidth; ++k) s[k] = (s[k] - t[k]) * factor;
    store<kWidth>(s, gradient + i);
  }
}

// ---- Optimizer, whose state is float32

// `copy` holds bfloat16, and `mask` what is trained; both may be null.
template <int kWidth>
__global__ void adamw(float* p, const float* g, float* m, float* v, unsigned short* copy, Index count,
                  AdamWStep s) {
  for (Index i = first_of_thread(); i < count; i += threads_of_grid()) {
    const float gradient = g[i] * s.gradient_scale;
    float first = m[i] * s.beta1 + gradient * s.first_rest;
    float second = v[i] * s.beta2 + gradient * gradient * s.second_rest;
    float value = p[i] * s.kept_by_decay - s.step_size * first / (sqrtf(second * s.inverse_correction2) + s.eps);
    m[i] = first;
    v[i] = second;
    p[i] = value;
    if (copy) copy[i] = float_to_bf16(value);
  }
}

// Each block leaves a sum.
template <int kWidth>
__global__ void sum_of_squares(double* of_blocks, const float* x, Index count) {
  double sum[1] = {0};
  for (Index i = first_of_thread(); i < count; i += threads_of_grid())
    sum[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  reduce_block(sum, Sum(), 0.0);
  if (threadIdx.x == 0) of_blocks[blockIdx.x] = sum[0];
}
