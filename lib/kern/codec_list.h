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
    X(Q8_0, q8_0)                                                             \
    X(Q4_K, q4_k)                                                             \
    X(Q6_K, q6_k)

#define GG_ENCODE_C_LIST(X)                                                   \
    X(F32, f32, 0)                                                            \
    X(F16, f16, 0)                                                            \
    X(BF16, bf16, 0)                                                          \
    X(Q4_0, q4_0, GG_CODEC_WEIGHT)                                            \
    X(Q8_0, q8_0, 0)                                                          \
    X(Q4_K, q4_k, GG_CODEC_WEIGHT)                                            \
    X(Q6_K, q6_k, GG_CODEC_WEIGHT)

#define GG_DECODE_AVX2_LIST(X)                                                \
    X(F16, f16)                                                               \
    X(BF16, bf16)                                                             \
    X(Q4_0, q4_0)                                                             \
    X(Q8_0, q8_0)                                                             \
    X(Q4_K, q4_k)                                                             \
    X(Q6_K, q6_k)

#define GG_ENCODE_AVX2_LIST(X)                                                \
    X(F16, f16)                                                               \
    X(BF16, bf16)                                                             \
    X(Q4_0, q4_0)                                                             \
    X(Q8_0, q8_0)                                                             \
    X(Q4_K, q4_k)                                                             \
    X(Q6_K, q6_k)

#endif
