/* SPDX-License-Identifier: MIT */
/* packed.h - weights of few bits, each held by several tensors of a folder
 *
 * A weight of [rows, columns] has a code per element, a scale per group of
 * columns, and a zero point per group or one for all:
 *
 *     weight = scale * (code - zero)
 *
 * in single precision; the difference is exact. Codes of 2, 4 or 8 bits lie in
 * 32-bit words, lowest bits first; codes of 3 bits (gptq) cross words. A row of
 * the table in packed.c describes each layout:
 *
 *     gptq    words down the columns, [columns / n, rows]; groups may be given
 *             for each column (g_idx); zero points along the rows, less 1 in
 *             the older of its two formats (AutoGPTQ, GPTQModel)
 *     awq     words along the rows, [columns, rows / 8], in the order 0 2 4 6
 *             1 3 5 7 (AutoAWQ, "gemm")
 *     packed  words along the columns, [rows, columns / n]; zero points down
 *             the rows, or half of the range (compressed-tensors,
 *             "pack-quantized")
 *     int     signed bytes, [rows, columns] (compressed-tensors,
 *             "int-quantized")
 *     scb     the same, in 127ths of a scale for each row (bitsandbytes,
 *             LLM.int8)
 *     mxfp4   blocks of 32 numbers, 16 bytes with two neighbours each, and the
 *             exponents of their scales (gpt-oss); rearranged to blocks of
 *             GGUF's type of that name without decoding
 *     e2m1    the same as matrices of bytes, [rows, columns / 2], and of
 *             exponents, [rows, columns / 32] (DeepSeek V4)
 *     mxfp4_pack  the same, all as unsigned bytes (compressed-tensors,
 *             "mxfp4-pack-quantized")
 */
#ifndef GG_DATA_PACKED_H
#define GG_DATA_PACKED_H

#include "data/safetensors.h"

enum gg_packed_form {
    GG_PACKED_GPTQ,
    GG_PACKED_AWQ,
    GG_PACKED_WORDS,
    GG_PACKED_INT,
    GG_PACKED_SCB,
    GG_PACKED_MXFP4,
    GG_PACKED_E2M1,
    GG_PACKED_MXFP4_PACK,
    GG_N_PACKED_FORMS
};

/* Settings of the folder for all its weights. */
struct gg_packed_config {
    enum gg_packed_form form;
    unsigned
        /* Bits of a code: 2, 3 (GPTQ), 4 or 8. WORDS takes them from shapes. */
        bits;
    uint64_t group;   /* columns of a group; 0: taken from the shapes of the
                       * scales */
    bool zero_plus_1; /* zero points are stored less 1 */
};

/* Join the tensors that hold one weight: the list gets NAME.weight for each
 * NAME.qweight or NAME.weight_packed, NAME_blocks for each NAME_blocks, or a
 * new NAME.weight in place of one of signed bytes. The tensors that it is made
 * of are marked as parts (is_part). Call it before gg_safetensors_scale, which
 * uses the same names.
 *
 * GGUF_E_TENSOR     Scales are missing, shapes do not fit each other, or a
 * group
 *                   does not exist. (A scale that is not finite is found when
 *                   weights are read.)
 * GGUF_E_LIMIT, GGUF_E_NOMEM */
enum gguf_status gg_packed_join(struct gg_safetensors *s,
                                const struct gg_packed_config *config,
                                struct gguf_error *err);

/* Join the tensors that hold the weight with codes in tensor i, if it has a
 * name of such codes. Statuses: those of gg_packed_join(). */
enum gguf_status gg_packed_join_one(struct gg_safetensors *s, uint32_t i,
                                    const struct gg_packed_config *config,
                                    struct gguf_error *err);

/* For the list: reader and page hints of tensor i, which is packed. */
enum gguf_status gg_packed_rows(const struct gg_safetensors *s, size_t i,
                                struct gg_data_rows *out,
                                struct gguf_error *err);
void gg_packed_advise(const struct gg_safetensors *s, size_t i, uint64_t first,
                      uint64_t n, enum gg_mapfile_advice how);
/* For the list: hold elements (gg_data_hold). Codes in another order than the
 * weight's rows, scales, zero points and lists of groups are held
 * completely. */
enum gguf_status gg_packed_hold(const struct gg_safetensors *s, size_t i,
                                uint64_t first, uint64_t n, bool begin,
                                struct gguf_error *err);

#endif
