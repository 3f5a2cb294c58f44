/* SPDX-License-Identifier: MIT */
/* block.h - layout of a block of each quantized type
 *
 * Numbers are little-endian; d, m and dmin of two bytes are f16. Blocks in a
 * file are not aligned: kernels read them with memcpy() or unaligned loads. The
 * comments give w, the weight of an element with code q; the decoder in kern/c
 * defines it.
 *
 * Sources: ggml-common.h (ggml, commit d99724f); for the types of ik_llama.cpp
 * its ggml-common.h and iqk_quantize.cpp (commit 8337e4c).
 */
#ifndef GG_DTYPE_BLOCK_H
#define GG_DTYPE_BLOCK_H

#include <stdint.h>

/* A block of n bytes whose layout the library does not know. */
#define GG_BYTES(n) char[n]

/* w = d * (q - 8); low nibbles are elements 0..15, high ones 16..31 */
struct gg_block_q4_0 {
    uint16_t d;
    uint8_t qs[16];
};
_Static_assert(sizeof(struct gg_block_q4_0) == 18, "block_q4_0");

/* w = d * q + m */
struct gg_block_q4_1 {
    uint16_t d, m;
    uint8_t qs[16];
};
_Static_assert(sizeof(struct gg_block_q4_1) == 20, "block_q4_1");

/* w = d * (q - 16); qh: fifth bits */
struct gg_block_q5_0 {
    uint16_t d;
    uint8_t qh[4];
    uint8_t qs[16];
};
_Static_assert(sizeof(struct gg_block_q5_0) == 22, "block_q5_0");

/* w = d * q + m; qh: fifth bits */
struct gg_block_q5_1 {
    uint16_t d, m;
    uint8_t qh[4];
    uint8_t qs[16];
};
_Static_assert(sizeof(struct gg_block_q5_1) == 24, "block_q5_1");

/* w = d * q */
struct gg_block_q8_0 {
    uint16_t d;
    int8_t qs[32];
};
_Static_assert(sizeof(struct gg_block_q8_0) == 34, "block_q8_0");

/* w = d * q; s = d * sum of q */
struct gg_block_q8_1 {
    uint16_t d, s;
    int8_t qs[32];
};
_Static_assert(sizeof(struct gg_block_q8_1) == 36, "block_q8_1");

/* 16 sub-blocks of 16: w = d * sc * q - dmin * m */
struct gg_block_q2_k {
    uint8_t scales[16];
    uint8_t qs[64];
    uint16_t d, dmin;
};
_Static_assert(sizeof(struct gg_block_q2_k) == 84, "block_q2_k");

/* 16 sub-blocks of 16: w = d * (sc - 32) * (q - 4) */
struct gg_block_q3_k {
    uint8_t hmask[32];
    uint8_t qs[64];
    uint8_t scales[12];
    uint16_t d;
};
_Static_assert(sizeof(struct gg_block_q3_k) == 110, "block_q3_k");

/* 8 sub-blocks of 32: w = d * sc * q - dmin * m */
struct gg_block_q4_k {
    uint16_t d, dmin;
    uint8_t scales[12];
    uint8_t qs[128];
};
_Static_assert(sizeof(struct gg_block_q4_k) == 144, "block_q4_k");

/* 8 sub-blocks of 32: w = d * sc * q - dmin * m */
struct gg_block_q5_k {
    uint16_t d, dmin;
    uint8_t scales[12];
    uint8_t qh[32];
    uint8_t qs[128];
};
_Static_assert(sizeof(struct gg_block_q5_k) == 176, "block_q5_k");

/* 16 sub-blocks of 16: w = d * sc * (q - 32) */
struct gg_block_q6_k {
    uint8_t ql[128];
    uint8_t qh[64];
    int8_t scales[16];
    uint16_t d;
};
_Static_assert(sizeof(struct gg_block_q6_k) == 210, "block_q6_k");

/* w = d * q; sums of 16 q each; run time only */
struct gg_block_q8_k {
    float d;
    int8_t qs[256];
    int16_t bsums[16];
};
_Static_assert(sizeof(struct gg_block_q8_k) == 292, "block_q8_k");

/* 8 groups of 32: 4 grid indices, 4 x 7 sign bits, 4 bit scale */
struct gg_block_iq2_xxs {
    uint16_t d;
    uint16_t qs[32];
};
_Static_assert(sizeof(struct gg_block_iq2_xxs) == 66, "block_iq2_xxs");

/* grid index of 9 bits and 7 sign bits per 8 elements */
struct gg_block_iq2_xs {
    uint16_t d;
    uint16_t qs[32];
    uint8_t scales[8];
};
_Static_assert(sizeof(struct gg_block_iq2_xs) == 74, "block_iq2_xs");

/* grid index of 10 bits per 8 elements; signs in qs[32..] */
struct gg_block_iq2_s {
    uint16_t d;
    uint8_t qs[64];
    uint8_t qh[8];
    uint8_t scales[8];
};
_Static_assert(sizeof(struct gg_block_iq2_s) == 82, "block_iq2_s");

/* 64 grid indices, then 8 words of signs and scale */
struct gg_block_iq3_xxs {
    uint16_t d;
    uint8_t qs[96];
};
_Static_assert(sizeof(struct gg_block_iq3_xxs) == 98, "block_iq3_xxs");

/* grid index of 9 bits per 4 elements */
struct gg_block_iq3_s {
    uint16_t d;
    uint8_t qs[64];
    uint8_t qh[8];
    uint8_t signs[32];
    uint8_t scales[4];
};
_Static_assert(sizeof(struct gg_block_iq3_s) == 110, "block_iq3_s");

/* grid index of 11 bits per 8 elements; shift and scale in qh */
struct gg_block_iq1_s {
    uint16_t d;
    uint8_t qs[32];
    uint16_t qh[8];
};
_Static_assert(sizeof(struct gg_block_iq1_s) == 50, "block_iq1_s");

/* IQ1_S with the f16 scale spread over scales */
struct gg_block_iq1_m {
    uint8_t qs[32];
    uint8_t qh[16];
    uint8_t scales[8];
};
_Static_assert(sizeof(struct gg_block_iq1_m) == 56, "block_iq1_m");

/* w = d * table[q] */
struct gg_block_iq4_nl {
    uint16_t d;
    uint8_t qs[16];
};
_Static_assert(sizeof(struct gg_block_iq4_nl) == 18, "block_iq4_nl");

/* 8 sub-blocks of 32: w = d * (sc - 32) * table[q] */
struct gg_block_iq4_xs {
    uint16_t d;
    uint16_t scales_h;
    uint8_t scales_l[4];
    uint8_t qs[128];
};
_Static_assert(sizeof(struct gg_block_iq4_xs) == 136, "block_iq4_xs");

/* five ternary digits per byte */
struct gg_block_tq1_0 {
    uint8_t qs[48];
    uint8_t qh[4];
    uint16_t d;
};
_Static_assert(sizeof(struct gg_block_tq1_0) == 54, "block_tq1_0");

/* four 2-bit digits per byte */
struct gg_block_tq2_0 {
    uint8_t qs[64];
    uint16_t d;
};
_Static_assert(sizeof(struct gg_block_tq2_0) == 66, "block_tq2_0");

/* E8M0 scale, E2M1 elements */
struct gg_block_mxfp4 {
    uint8_t e;
    uint8_t qs[16];
};
_Static_assert(sizeof(struct gg_block_mxfp4) == 17, "block_mxfp4");

/* UE4M3 scale per 16, E2M1 elements */
struct gg_block_nvfp4 {
    uint8_t d[4];
    uint8_t qs[32];
};
_Static_assert(sizeof(struct gg_block_nvfp4) == 36, "block_nvfp4");

/* 128 sign bits */
struct gg_block_q1_0 {
    uint16_t d;
    uint8_t qs[16];
};
_Static_assert(sizeof(struct gg_block_q1_0) == 18, "block_q1_0");

/* 64 2-bit digits */
struct gg_block_q2_0 {
    uint16_t d;
    uint8_t qs[16];
};
_Static_assert(sizeof(struct gg_block_q2_0) == 18, "block_q2_0");

/* ------------------------------------------- types of ik_llama.cpp only --- */

/* w = d * (q - 32); qh: upper two bits, of j and j + 8 in nibbles */
struct gg_block_q6_0 {
    uint16_t d;
    uint8_t qh[8];
    uint8_t qs[16];
};
_Static_assert(sizeof(struct gg_block_q6_0) == 26, "block_q6_0");

/* IQ2_K to IQ6_K: 16 sub-blocks of 16: w = d * sc * (level[q] + shift), with
 * the shift in sub-block s if bit s of extra is set */
struct gg_block_iq2_k {
    uint16_t d, extra;
    uint8_t scales[8];
    uint8_t qs[64];
};
_Static_assert(sizeof(struct gg_block_iq2_k) == 76, "block_iq2_k");

/* scales_h: signs of the scales */
struct gg_block_iq3_k {
    uint16_t d, extra, scales_h;
    uint8_t scales_l[8];
    uint8_t qs[64];
    uint8_t qh[32];
};
_Static_assert(sizeof(struct gg_block_iq3_k) == 110, "block_iq3_k");

struct gg_block_iq4_k {
    uint16_t d, extra;
    uint8_t scales_h[4];
    uint8_t scales_l[8];
    uint8_t qs[128];
};
_Static_assert(sizeof(struct gg_block_iq4_k) == 144, "block_iq4_k");

struct gg_block_iq5_k {
    uint16_t d, extra;
    uint8_t scales_h[4];
    uint8_t scales_l[8];
    uint8_t qs[128];
    uint8_t qh[32];
};
_Static_assert(sizeof(struct gg_block_iq5_k) == 176, "block_iq5_k");

/* w with a cubic of q in place of level[q] */
struct gg_block_iq6_k {
    uint16_t d, extra;
    int8_t scales[16];
    uint8_t qs[128];
    uint8_t qh[64];
};
_Static_assert(sizeof(struct gg_block_iq6_k) == 212, "block_iq6_k");

/* IQ4_KS and all below: 8 sub-blocks of 32; d is in the header of the row, f16
 * for IQ2_KS and IQ3_KS, f32 for the others. scales: seven bits of scale, the
 * lowest bit is the shift */
struct gg_block_iq4_ks {
    uint8_t scales[8];
    uint8_t qs[128];
};
_Static_assert(sizeof(struct gg_block_iq4_ks) == 136, "block_iq4_ks");

struct gg_block_iq5_ks {
    uint8_t scales[8];
    uint8_t qs[128];
    uint8_t qh[32];
};
_Static_assert(sizeof(struct gg_block_iq5_ks) == 168, "block_iq5_ks");

/* IQ4_KS with the bits of a scale as the lowest bits of eight words of codes */
struct gg_block_iq4_kss {
    uint16_t qs[64];
};
_Static_assert(sizeof(struct gg_block_iq4_kss) == 128, "block_iq4_kss");

/* extra: shifts, then fifth bits of scales */
struct gg_block_iq2_ks {
    uint16_t extra;
    uint8_t scales[4];
    uint8_t qs[64];
};
_Static_assert(sizeof(struct gg_block_iq2_ks) == 70, "block_iq2_ks");

/* extra: fifth bits of scales, then shifts */
struct gg_block_iq3_ks {
    uint16_t extra;
    uint8_t scales[4];
    uint8_t qs[64];
    uint8_t qh[32];
};
_Static_assert(sizeof(struct gg_block_iq3_ks) == 102, "block_iq3_ks");

/* 64 columns of ternary digits, five a byte; extra: digits 15, 31, 47, 63 */
struct gg_block_iq1_bn {
    uint8_t ql[12];
    uint8_t extra;
};
_Static_assert(sizeof(struct gg_block_iq1_bn) == 13, "block_iq1_bn");

/* four 2-bit digits per byte; w = d * (q - 1) */
struct gg_block_iq2_bn {
    uint8_t qs[16];
};
_Static_assert(sizeof(struct gg_block_iq2_bn) == 16, "block_iq2_bn");

/* w = d * q; the header of a row is d, f32, and the sum of its q, i32 */
struct gg_block_q8_kv {
    int8_t qs[32];
};
_Static_assert(sizeof(struct gg_block_q8_kv) == 32, "block_q8_kv");

/* a row of IQ1_S_R4 or IQ1_M_R4 that was taken out of its group: d is in the
 * header of the row, f16; codes as in IQ1_S and IQ1_M */
struct gg_block_iq1_s_r4 {
    uint8_t qs[4];
    uint16_t qh;
};
_Static_assert(sizeof(struct gg_block_iq1_s_r4) == 6, "block_iq1_s_r4");

struct gg_block_iq1_m_r4 {
    uint8_t qs[4];
    uint8_t qh[2];
    uint8_t scales;
};
_Static_assert(sizeof(struct gg_block_iq1_m_r4) == 7, "block_iq1_m_r4");

/* codes of five bits for pairs of elements; qh: the fifth */
struct gg_block_iq2_kl {
    uint16_t scales_h;
    uint8_t scales_l[4];
    uint8_t qs[64];
    uint8_t qh[16];
};
_Static_assert(sizeof(struct gg_block_iq2_kl) == 86, "block_iq2_kl");

/* IQ1_KT to IQ4_KT: states of a trellis, of 13, 16, 16 and 15 bits, for groups
 * of 8 elements, 4 in IQ4_KT */
struct gg_block_iq1_kt {
    uint8_t sh[8]; /* scales and the highest bits of four states */
    uint8_t ql[32];
    uint8_t qh[16];
};
_Static_assert(sizeof(struct gg_block_iq1_kt) == 56, "block_iq1_kt");

struct gg_block_iq2_kt {
    uint8_t scales[4];
    uint16_t ql[32];
};
_Static_assert(sizeof(struct gg_block_iq2_kt) == 68, "block_iq2_kt");

/* qh: signs */
struct gg_block_iq3_kt {
    uint8_t scales[4];
    uint16_t ql[32];
    uint8_t qh[32];
};
_Static_assert(sizeof(struct gg_block_iq3_kt) == 100, "block_iq3_kt");

/* sh: a scale, its lowest bit the choice of a trellis, and the three highest
 * bits of eight states */
struct gg_block_iq4_kt {
    uint32_t sh[8];
    uint8_t ql[64];
    uint8_t qh[32];
};
_Static_assert(sizeof(struct gg_block_iq4_kt) == 128, "block_iq4_kt");

#endif
