/* SPDX-License-Identifier: MIT */
/* codec_list.h - table of codec kernels: a row for each type
 *
 * X(TYPE, NAME, decoders, encoders, dots, FLAGS): for each kind of kernel a
 * column for each instruction set, C first. 1: the kernel
 * gg_kern_decode_NAME_LEVEL, gg_kern_encode_NAME_LEVEL or
 * gg_kern_dots_NAME_LEVEL of GG_DT_TYPE exists. Sets without kernels of a kind
 * have no column. FLAGS: 0 or bits GG_CODEC_... (codec.h).
 *
 * Encoders that search for scales, one lane for each of 16 groups, are 1.3 to
 * 1.5 times as fast with AVX-512 (Q3_K's 1.1 to 1.2, and only with importance
 * data). Decoders would gain nothing: with AVX2 most write 60 to 76 GB/s of
 * floats, the rate of F16's decoder, which only widens. (One core of a Zen 5.)
 *
 * Encoders of interleaved types write rows of the plain type
 * (dtype/interleave.h).
 */
#ifndef GG_KERN_CODEC_LIST_H
#define GG_KERN_CODEC_LIST_H

/*    type     name     decoders  encoders        dots            flags
 *                      C  AVX2   C  AVX2 AVX512  C  AVX2 AVX512 */
#define GG_CODEC_LIST(X)                                                      \
    X(F32, f32, 1, 0, 1, 0, 0, 1, 1, 1, 0)                                    \
    X(F16, f16, 1, 1, 1, 1, 0, 1, 1, 1, 0)                                    \
    X(BF16, bf16, 1, 1, 1, 1, 0, 1, 1, 1, 0)                                  \
    X(F64, f64, 1, 0, 1, 0, 0, 0, 0, 0, 0)                                    \
    X(F8_E4M3, f8_e4m3, 1, 0, 1, 0, 0, 0, 0, 0, 0)                            \
    X(I8, i8, 1, 1, 0, 0, 0, 0, 0, 0, 0)                                      \
    X(I16, i16, 1, 1, 0, 0, 0, 0, 0, 0, 0)                                    \
    X(I32, i32, 1, 0, 0, 0, 0, 0, 0, 0, 0)                                    \
    X(I64, i64, 1, 0, 0, 0, 0, 0, 0, 0, 0)                                    \
    X(Q4_0, q4_0, 1, 1, 1, 1, 0, 0, 1, 1, GG_CODEC_WEIGHT)                    \
    X(Q4_1, q4_1, 1, 1, 1, 1, 0, 0, 1, 1, GG_CODEC_WEIGHT)                    \
    X(Q5_0, q5_0, 1, 1, 1, 1, 0, 0, 1, 1, GG_CODEC_WEIGHT)                    \
    X(Q5_1, q5_1, 1, 1, 1, 1, 0, 0, 1, 1, GG_CODEC_WEIGHT)                    \
    X(Q8_0, q8_0, 1, 1, 1, 1, 0, 0, 1, 1, 0)                                  \
    X(Q8_1, q8_1, 1, 1, 1, 1, 0, 0, 1, 1, 0)                                  \
    X(Q2_K, q2_k, 1, 1, 1, 1, 1, 0, 1, 1, GG_CODEC_WEIGHT)                    \
    X(Q3_K, q3_k, 1, 1, 1, 1, 1, 0, 1, 1, GG_CODEC_WEIGHT)                    \
    X(Q4_K, q4_k, 1, 1, 1, 1, 1, 0, 1, 1, GG_CODEC_WEIGHT)                    \
    X(Q5_K, q5_k, 1, 1, 1, 1, 1, 0, 1, 1, GG_CODEC_WEIGHT)                    \
    X(Q6_K, q6_k, 1, 1, 1, 1, 1, 0, 1, 1, GG_CODEC_WEIGHT)                    \
    X(Q8_K, q8_k, 1, 1, 1, 1, 0, 0, 1, 1, 0)                                  \
    X(IQ1_S, iq1_s, 1, 1, 1, 1, 0, 0, 1, 1,                                   \
      GG_CODEC_WEIGHT | GG_CODEC_NEEDS_WEIGHT)                                \
    X(IQ1_M, iq1_m, 1, 1, 1, 1, 0, 0, 1, 1, GG_CODEC_WEIGHT)                  \
    X(IQ2_XXS, iq2_xxs, 1, 1, 1, 1, 0, 0, 1, 1,                               \
      GG_CODEC_WEIGHT | GG_CODEC_NEEDS_WEIGHT)                                \
    X(IQ2_XS, iq2_xs, 1, 1, 1, 1, 0, 0, 1, 1,                                 \
      GG_CODEC_WEIGHT | GG_CODEC_NEEDS_WEIGHT)                                \
    X(IQ2_S, iq2_s, 1, 1, 1, 1, 0, 0, 1, 1, GG_CODEC_WEIGHT)                  \
    X(IQ3_XXS, iq3_xxs, 1, 1, 1, 1, 0, 0, 1, 1, GG_CODEC_WEIGHT)              \
    X(IQ3_S, iq3_s, 1, 1, 1, 1, 0, 0, 1, 1, GG_CODEC_WEIGHT)                  \
    X(IQ4_NL, iq4_nl, 1, 1, 1, 1, 1, 0, 1, 1, GG_CODEC_WEIGHT)                \
    X(IQ4_XS, iq4_xs, 1, 1, 1, 1, 1, 0, 1, 1, GG_CODEC_WEIGHT)                \
    X(TQ1_0, tq1_0, 1, 1, 1, 1, 0, 0, 1, 1, 0)                                \
    X(TQ2_0, tq2_0, 1, 1, 1, 1, 0, 0, 1, 1, 0)                                \
    X(MXFP4, mxfp4, 1, 1, 1, 1, 0, 0, 1, 1, 0)                                \
    X(NVFP4, nvfp4, 1, 1, 1, 1, 0, 0, 1, 1, 0)                                \
    X(Q1_0, q1_0, 1, 1, 1, 1, 0, 0, 1, 1, 0)                                  \
    X(Q2_0, q2_0, 1, 1, 1, 1, 0, 0, 1, 1, 0)                                  \
    X(Q6_0, q6_0, 1, 1, 1, 0, 0, 0, 1, 1, GG_CODEC_WEIGHT)                    \
    X(IQ2_K, iq2_k, 1, 1, 1, 0, 0, 0, 1, 1, GG_CODEC_WEIGHT)                  \
    X(IQ3_K, iq3_k, 1, 1, 1, 0, 0, 0, 1, 1, GG_CODEC_WEIGHT)                  \
    X(IQ4_K, iq4_k, 1, 1, 1, 0, 0, 0, 1, 1, GG_CODEC_WEIGHT)                  \
    X(IQ5_K, iq5_k, 1, 1, 1, 0, 0, 0, 1, 1, GG_CODEC_WEIGHT)                  \
    X(IQ6_K, iq6_k, 1, 1, 1, 0, 0, 0, 1, 1, GG_CODEC_WEIGHT)                  \
    X(IQ4_KS, iq4_ks, 1, 1, 1, 0, 0, 0, 0, 0, GG_CODEC_WEIGHT)                \
    X(IQ2_KS, iq2_ks, 1, 1, 1, 0, 0, 0, 0, 0, GG_CODEC_WEIGHT)                \
    X(IQ4_KSS, iq4_kss, 1, 1, 1, 0, 0, 0, 0, 0, GG_CODEC_WEIGHT)              \
    X(IQ5_KS, iq5_ks, 1, 1, 1, 0, 0, 0, 0, 0, GG_CODEC_WEIGHT)                \
    X(IQ3_KS, iq3_ks, 1, 1, 1, 0, 0, 0, 0, 0, GG_CODEC_WEIGHT)                \
    X(IQ1_BN, iq1_bn, 1, 0, 1, 0, 0, 0, 0, 0, 0)                              \
    X(IQ2_BN, iq2_bn, 1, 0, 1, 0, 0, 0, 0, 0, 0)                              \
    X(Q8_KV, q8_kv, 1, 0, 1, 0, 0, 0, 0, 0, 0)                                \
    X(IQ2_KL, iq2_kl, 1, 0, 1, 0, 0, 0, 0, 0, GG_CODEC_WEIGHT)                \
    X(IQ1_KT, iq1_kt, 1, 0, 1, 1, 0, 0, 0, 0, GG_CODEC_WEIGHT)                \
    X(IQ2_KT, iq2_kt, 1, 0, 1, 1, 0, 0, 0, 0, GG_CODEC_WEIGHT)                \
    X(IQ3_KT, iq3_kt, 1, 0, 1, 1, 0, 0, 0, 0, GG_CODEC_WEIGHT)                \
    X(IQ4_KT, iq4_kt, 1, 0, 1, 1, 0, 0, 0, 0, GG_CODEC_WEIGHT)                \
    X(IQ1_S_R4, iq1_s_r4, 1, 0, 0, 0, 0, 0, 0, 0, 0)                          \
    X(IQ1_M_R4, iq1_m_r4, 1, 0, 0, 0, 0, 0, 0, 0, 0)                          \
    X(Q8_K_R8, q8_k_r8, 0, 0, 1, 0, 0, 0, 0, 0, 0)                            \
    X(Q8_K_R16, q8_k_r16, 0, 0, 1, 0, 0, 0, 0, 0, 0)

/* GG_CODEC_##COLUMN(text): the text if there is the column's kernel. */
#define GG_CODEC_0(...)
#define GG_CODEC_1(...) __VA_ARGS__

#endif
