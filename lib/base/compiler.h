/* SPDX-License-Identifier: MIT */
/* compiler.h - attributes and builtins of compilers, each with a fallback
 *
 * No other file uses them directly.
 */
#ifndef GG_BASE_COMPILER_H
#define GG_BASE_COMPILER_H

#if defined(__GNUC__)
#define GG_LIKELY(x)     __builtin_expect(!!(x), 1)
#define GG_UNLIKELY(x)   __builtin_expect(!!(x), 0)
#define GG_NOINLINE      __attribute__((noinline))
#define GG_ALWAYS_INLINE inline __attribute__((always_inline))
#define GG_PREFETCH(p)   __builtin_prefetch(p)
#define GG_PREFETCH_W(p) __builtin_prefetch(p, 1)
#define GG_CTZ32(x)      __builtin_ctz(x) /* trailing zero bits, x != 0 */
#else
#define GG_LIKELY(x)   (x)
#define GG_UNLIKELY(x) (x)
#define GG_NOINLINE
#define GG_ALWAYS_INLINE inline
#define GG_PREFETCH(p)   ((void)(p))
#define GG_PREFETCH_W(p) ((void)(p))
static inline int gg_base_ctz32(unsigned x)
{
    int n = 0;
    for (; !(x & 1); x >>= 1)
        n++;
    return n;
}
#define GG_CTZ32(x)      gg_base_ctz32(x)
#endif

/* Unroll the loop that follows, which has a constant number of at most 16
 * rounds, so that arrays indexed by its counter can live in registers. */
#if defined(__clang__)
#define GG_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define GG_UNROLL _Pragma("GCC unroll 16")
#else
#define GG_UNROLL
#endif

#define GG_LEN(a)    (sizeof(a) / sizeof((a)[0]))
#define GG_MIN(a, b) ((a) < (b) ? (a) : (b))
#define GG_MAX(a, b) ((a) > (b) ? (a) : (b))

#endif
