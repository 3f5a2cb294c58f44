/* gemm_int_512.h - tiles of 32 rows by 6 columns in vectors of 512 bits
 *
 * Included once by the file of a level and a width of integers. 12 sums of
 * integers and 12 in f32, two vectors of weights and a broadcast are in
 * registers, and without VNNI a product. Twice as many columns, whose sums in
 * f32 are in memory, are a tenth slower.
 */
#include <immintrin.h>

#define VI         __m512i
#define VF         __m512
#define vi_zero    _mm512_setzero_si512
#define vi_load(p) _mm512_load_si512(p)
#define vi_all(p)  _mm512_castps_si512(_mm512_set1_ps(*(p)))
#define vf_zero    _mm512_setzero_ps
#define vf_loadu   _mm512_loadu_ps
#define vf_storeu  _mm512_storeu_ps
#define vf_all(p)  _mm512_set1_ps(*(p))
#define vf_mul     _mm512_mul_ps
#define vf_fma     _mm512_fmadd_ps
#define vf_add     _mm512_add_ps
#define vf_of      _mm512_cvtepi32_ps
/* clang-format off */
#define CASES CASE(2) CASE(4) CASE(6)
/* clang-format on */

enum {
    MR = GG_GEMM_MR_INT512,
    NR = GG_GEMM_NR_INT512,
    LANES = 16,
    AT_ONCE = NR,
    ROUND_TO = 2
};
