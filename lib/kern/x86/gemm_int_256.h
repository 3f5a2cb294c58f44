/* gemm_int_256.h - tiles of 16 rows by 6 columns in vectors of 256 bits
 *
 * Included once by the file of a level and a width of integers.
 * Twelve sums of integers, two vectors of weights and a broadcast are in
 * registers, and without VNNI a product. Bytes are so quick that what moves
 * between runs counts: three columns at a time, AT_ONCE defined before, are up
 * to a quarter faster, on a Xeon with AVX-VNNI a tenth. Pairs are slower so.
 */
#include <immintrin.h>

#define VI         __m256i
#define VF         __m256
#define vi_zero    _mm256_setzero_si256
#define vi_load(p) _mm256_load_si256((const __m256i *)(p))
#define vi_all(p)  _mm256_castps_si256(_mm256_broadcast_ss(p))
#define vf_zero    _mm256_setzero_ps
#define vf_loadu   _mm256_loadu_ps
#define vf_storeu  _mm256_storeu_ps
#define vf_all     _mm256_broadcast_ss
#define vf_mul     _mm256_mul_ps
#define vf_fma     _mm256_fmadd_ps
#define vf_add     _mm256_add_ps
#define vf_of      _mm256_cvtepi32_ps
/* clang-format off */
#ifdef AT_ONCE
#define CASES CASE(AT_ONCE)
enum { ROUND_TO = AT_ONCE };
#else
#define CASES CASE(2) CASE(4) CASE(6)
enum { AT_ONCE = GG_GEMM_NR_AVX2, ROUND_TO = 2 };
#endif
/* clang-format on */

enum { MR = GG_GEMM_MR_AVX2, NR = GG_GEMM_NR_AVX2, LANES = 8 };
