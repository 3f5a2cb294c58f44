/* SPDX-License-Identifier: MIT */
/* packed.h - weights of few bits that several tensors of a folder hold
 *
 * A weight of [rows, columns] is codes, a scale for each group of columns, and
 * for each group a zero point too, or one for all:
 *
 *     weight = scale * (code - zero)
 *
 * in single precision, the difference exactly. Codes of 2, 4 or 8 bits lie in
 * 32-bit words, the lowest bits first, those of 3 (gptq) across words; a row of
 * the table in packed.c says where each lies:
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
 *             exponents of their scales (gpt-oss); they become the blocks of
 *             GGUF's type of that name without being computed
 *     e2m1    the same as matrices of bytes, [rows, columns / 2], and of
 *             exponents, [rows, columns / 32] (DeepSeek V4)
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
    GG_PACKED_E2M1
};

/* What the folder says of all of its weights. */
struct gg_packed_config {
    enum gg_packed_form form;
    unsigned
        bits; /* of a code: 2, 3 (GPTQ), 4 or 8; WORDS takes them from shapes */
    uint64_t group;   /* columns; 0: by the shapes of the scales */
    bool zero_plus_1; /* zero points are stored less 1 */
};

/* Put tensors together that are one weight: the list gets a tensor NAME.weight
 * for each NAME.qweight or NAME.weight_packed, NAME_blocks of NAME_blocks, or
 * another NAME.weight in the place of the one of signed bytes; those that it is
 * of are parts (is_part). Before gg_safetensors_scale is of use for the same
 * names.
 *
 * GGUF_E_TENSOR     one without its scales; shapes that do not go together; a
 *                   group that there is not; a scale that is not finite is
 *                   found when weights are read
 * GGUF_E_LIMIT, GGUF_E_NOMEM */
enum gguf_status gg_packed_join(struct gg_safetensors *s,
                                const struct gg_packed_config *config,
                                struct gguf_error *err);

/* For the list: rows of tensor i, which is packed; its pages. */
enum gguf_status gg_packed_rows(const struct gg_safetensors *s, size_t i,
                                struct gg_data_rows *out,
                                struct gguf_error *err);
void gg_packed_advise(const struct gg_safetensors *s, size_t i, uint64_t first,
                      uint64_t n, enum gg_mapfile_advice how);
/* gg_data_hold. Codes that lie otherwise than the weight's rows, scales, zero
 * points and lists of groups are held as a whole. */
enum gguf_status gg_packed_hold(const struct gg_safetensors *s, size_t i,
                                uint64_t first, uint64_t n, bool begin,
                                struct gguf_error *err);

#endif
