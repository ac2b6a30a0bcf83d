// Products on processors with AVX-512 BF16: pairs of bfloat16, added up in float32.

enum {
    PANEL = 32,   // outputs whose weights are stored together
    TILE = 12,    // tokens at a time: sums of twelve times thirty-two fill twenty-four of the thirty-two registers
    AHEAD = 2048, // weights that are prefetched before their use: 4 KB
};

typedef uint16_t Weight; // [outputs / PANEL][inputs / 2][PANEL][2]
typedef uint16_t Input;

static bool runs_here(void) { return has_avx512_bf16(); }

#pragma clang attribute push(__attribute__((target("fma,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16"))), apply_to = function)

static inline void put(Input *to, __m256 values) { _mm_storeu_si128((__m128i *)to, (__m128i)_mm256_cvtneps_pbh(values)); }

// Sums of `rows` tokens for one panel. Always inlined with a constant, so that the sums stay in registers.
static inline __attribute__((always_inline)) void multiply(const int rows, const Weight *weights, const Input *x, int inputs,
                                                           float sums[TILE][PANEL]) {
    __m512 own[TILE][2];
    for (int row = 0; row < rows; row++) own[row][0] = own[row][1] = _mm512_setzero_ps();
    for (int i = 0; i < inputs; i += 2, weights += 2 * PANEL) {
        __builtin_prefetch(weights + AHEAD), __builtin_prefetch(weights + AHEAD + PANEL); // both inputs: 128 bytes
        __m512bh low = (__m512bh)_mm512_loadu_si512(weights), high = (__m512bh)_mm512_loadu_si512(weights + PANEL);
#pragma unroll
        for (int row = 0; row < rows; row++) {
            int32_t pair;
            __builtin_memcpy(&pair, x + row * inputs + i, sizeof pair);
            __m512bh value = (__m512bh)_mm512_set1_epi32(pair);
            own[row][0] = _mm512_dpbf16_ps(own[row][0], value, low);
            own[row][1] = _mm512_dpbf16_ps(own[row][1], value, high);
        }
    }
    for (int row = 0; row < rows; row++) _mm512_storeu_ps(sums[row], own[row][0]), _mm512_storeu_ps(sums[row] + 16, own[row][1]);
}

// On its own, so that the sums have all registers.
static __attribute__((noinline)) void tile(int rows, const Weight *weights, const Input *x, int inputs, float sums[TILE][PANEL]) {
    switch (rows) {
    case 1: return multiply(1, weights, x, inputs, sums);
    case 2: return multiply(2, weights, x, inputs, sums);
    case 3: return multiply(3, weights, x, inputs, sums);
    case 4: return multiply(4, weights, x, inputs, sums);
    case 5: return multiply(5, weights, x, inputs, sums);
    case 6: return multiply(6, weights, x, inputs, sums);
    case 7: return multiply(7, weights, x, inputs, sums);
    case 8: return multiply(8, weights, x, inputs, sums);
    case 9: return multiply(9, weights, x, inputs, sums);
    case 10: return multiply(10, weights, x, inputs, sums);
    case 11: return multiply(11, weights, x, inputs, sums);
    default: return multiply(TILE, weights, x, inputs, sums);
    }
}
