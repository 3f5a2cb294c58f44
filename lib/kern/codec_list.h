/* codec_list.h - which codec kernels there are, one row each
 *
 * X(TYPE, NAME): GG_DT_TYPE has the kernel gg_decode_NAME_LEVEL. Rows of
 * encoders in C also carry the type's GG_CODEC_ flags.
 */
#ifndef GG_KERN_CODEC_LIST_H
#define GG_KERN_CODEC_LIST_H

#define GG_DECODE_C_LIST(X)                                                   \
    X(F32, f32)                                                               \
    X(F16, f16)                                                               \
    X(BF16, bf16)                                                             \
    X(F64, f64)                                                               \
    X(I8, i8)                                                                 \
    X(I16, i16)                                                               \
    X(I32, i32)                                                               \
    X(I64, i64)                                                               \
    X(Q4_0, q4_0)                                                             \
    X(Q4_1, q4_1)                                                             \
    X(Q5_0, q5_0)                                                             \
    X(Q5_1, q5_1)                                                             \
    X(Q8_0, q8_0)                                                             \
    X(Q8_1, q8_1)                                                             \
    X(Q2_K, q2_k)                                                             \
    X(Q3_K, q3_k)                                                             \
    X(Q4_K, q4_k)                                                             \
    X(Q5_K, q5_k)                                                             \
    X(Q6_K, q6_k)                                                             \
    X(Q8_K, q8_k)                                                             \
    X(IQ1_S, iq1_s)                                                           \
    X(IQ1_M, iq1_m)                                                           \
    X(IQ2_XXS, iq2_xxs)                                                       \
    X(IQ2_XS, iq2_xs)                                                         \
    X(IQ2_S, iq2_s)                                                           \
    X(IQ3_XXS, iq3_xxs)                                                       \
    X(IQ3_S, iq3_s)                                                           \
    X(IQ4_NL, iq4_nl)                                                         \
    X(IQ4_XS, iq4_xs)                                                         \
    X(TQ1_0, tq1_0)                                                           \
    X(TQ2_0, tq2_0)                                                           \
    X(MXFP4, mxfp4)                                                           \
    X(NVFP4, nvfp4)                                                           \
    X(Q1_0, q1_0)                                                             \
    X(Q2_0, q2_0)                                                             \
    GG_DECODE_FORK_LIST(X)

/* Types of ik_llama.cpp: decoded at all levels. */
#define GG_DECODE_FORK_LIST(X)                                                \
    X(Q6_0, q6_0)                                                             \
    X(IQ2_K, iq2_k)                                                           \
    X(IQ3_K, iq3_k)                                                           \
    X(IQ4_K, iq4_k)                                                           \
    X(IQ5_K, iq5_k)                                                           \
    X(IQ6_K, iq6_k)                                                           \
    X(IQ4_KS, iq4_ks)                                                         \
    X(IQ2_KS, iq2_ks)                                                         \
    X(IQ4_KSS, iq4_kss)                                                       \
    X(IQ5_KS, iq5_ks)                                                         \
    X(IQ3_KS, iq3_ks)

#define GG_ENCODE_C_LIST(X)                                                   \
    X(F32, f32, 0)                                                            \
    X(F16, f16, 0)                                                            \
    X(BF16, bf16, 0)                                                          \
    X(F64, f64, 0)                                                            \
    X(Q4_0, q4_0, GG_CODEC_WEIGHT)                                            \
    X(Q4_1, q4_1, GG_CODEC_WEIGHT)                                            \
    X(Q5_0, q5_0, GG_CODEC_WEIGHT)                                            \
    X(Q5_1, q5_1, GG_CODEC_WEIGHT)                                            \
    X(Q8_0, q8_0, 0)                                                          \
    X(Q8_1, q8_1, 0)                                                          \
    X(Q2_K, q2_k, GG_CODEC_WEIGHT)                                            \
    X(Q3_K, q3_k, GG_CODEC_WEIGHT)                                            \
    X(Q4_K, q4_k, GG_CODEC_WEIGHT)                                            \
    X(Q5_K, q5_k, GG_CODEC_WEIGHT)                                            \
    X(Q6_K, q6_k, GG_CODEC_WEIGHT)                                            \
    X(Q8_K, q8_k, 0)                                                          \
    X(IQ1_S, iq1_s, GG_CODEC_WEIGHT | GG_CODEC_NEEDS_WEIGHT)                  \
    X(IQ1_M, iq1_m, GG_CODEC_WEIGHT)                                          \
    X(IQ2_XXS, iq2_xxs, GG_CODEC_WEIGHT | GG_CODEC_NEEDS_WEIGHT)              \
    X(IQ2_XS, iq2_xs, GG_CODEC_WEIGHT | GG_CODEC_NEEDS_WEIGHT)                \
    X(IQ2_S, iq2_s, GG_CODEC_WEIGHT)                                          \
    X(IQ3_XXS, iq3_xxs, GG_CODEC_WEIGHT)                                      \
    X(IQ3_S, iq3_s, GG_CODEC_WEIGHT)                                          \
    X(IQ4_NL, iq4_nl, GG_CODEC_WEIGHT)                                        \
    X(IQ4_XS, iq4_xs, GG_CODEC_WEIGHT)                                        \
    X(TQ1_0, tq1_0, 0)                                                        \
    X(TQ2_0, tq2_0, 0)                                                        \
    X(MXFP4, mxfp4, 0)                                                        \
    X(NVFP4, nvfp4, 0)                                                        \
    X(Q1_0, q1_0, 0)                                                          \
    X(Q2_0, q2_0, 0)

#define GG_DECODE_AVX2_LIST(X)                                                \
    X(F16, f16)                                                               \
    X(BF16, bf16)                                                             \
    X(I8, i8)                                                                 \
    X(I16, i16)                                                               \
    X(Q4_0, q4_0)                                                             \
    X(Q4_1, q4_1)                                                             \
    X(Q5_0, q5_0)                                                             \
    X(Q5_1, q5_1)                                                             \
    X(Q8_0, q8_0)                                                             \
    X(Q8_1, q8_1)                                                             \
    X(Q2_K, q2_k)                                                             \
    X(Q3_K, q3_k)                                                             \
    X(Q4_K, q4_k)                                                             \
    X(Q5_K, q5_k)                                                             \
    X(Q6_K, q6_k)                                                             \
    X(Q8_K, q8_k)                                                             \
    X(IQ1_S, iq1_s)                                                           \
    X(IQ1_M, iq1_m)                                                           \
    X(IQ2_XXS, iq2_xxs)                                                       \
    X(IQ2_XS, iq2_xs)                                                         \
    X(IQ2_S, iq2_s)                                                           \
    X(IQ3_XXS, iq3_xxs)                                                       \
    X(IQ3_S, iq3_s)                                                           \
    X(IQ4_NL, iq4_nl)                                                         \
    X(IQ4_XS, iq4_xs)                                                         \
    X(TQ1_0, tq1_0)                                                           \
    X(TQ2_0, tq2_0)                                                           \
    X(MXFP4, mxfp4)                                                           \
    X(NVFP4, nvfp4)                                                           \
    X(Q1_0, q1_0)                                                             \
    X(Q2_0, q2_0)                                                             \
    GG_DECODE_FORK_LIST(X)

#define GG_ENCODE_AVX2_LIST(X)                                                \
    X(F16, f16)                                                               \
    X(BF16, bf16)                                                             \
    X(Q4_0, q4_0)                                                             \
    X(Q4_1, q4_1)                                                             \
    X(Q5_0, q5_0)                                                             \
    X(Q5_1, q5_1)                                                             \
    X(Q8_0, q8_0)                                                             \
    X(Q2_K, q2_k)                                                             \
    X(Q3_K, q3_k)                                                             \
    X(Q4_K, q4_k)                                                             \
    X(Q5_K, q5_k)                                                             \
    X(Q6_K, q6_k)                                                             \
    X(IQ1_S, iq1_s)                                                           \
    X(IQ1_M, iq1_m)                                                           \
    X(IQ2_XXS, iq2_xxs)                                                       \
    X(IQ2_XS, iq2_xs)                                                         \
    X(IQ2_S, iq2_s)                                                           \
    X(IQ3_XXS, iq3_xxs)                                                       \
    X(IQ3_S, iq3_s)                                                           \
    X(IQ4_NL, iq4_nl)                                                         \
    X(IQ4_XS, iq4_xs)                                                         \
    X(Q8_1, q8_1)                                                             \
    X(Q8_K, q8_k)                                                             \
    X(TQ1_0, tq1_0)                                                           \
    X(TQ2_0, tq2_0)                                                           \
    X(MXFP4, mxfp4)                                                           \
    X(NVFP4, nvfp4)                                                           \
    X(Q1_0, q1_0)                                                             \
    X(Q2_0, q2_0)

#endif
