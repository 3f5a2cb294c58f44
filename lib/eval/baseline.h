/* baseline.h - records of a baseline's file */
#ifndef GG_EVAL_BASELINE_H
#define GG_EVAL_BASELINE_H

#include "eval/divergence.h"
#include "gguf/baseline.h"

enum { GG_BASELINE_HEAD = 8 + 3 * 4, GG_BASELINE_RECORD_HEAD = 8 };
#define GG_BASELINE_MAGIC "_logits_"

/* Bytes of a record. */
static inline uint64_t gg_baseline_record_size(uint32_t n_vocab)
{
    return GG_BASELINE_RECORD_HEAD +
           2 * (((uint64_t)n_vocab + 1) & ~UINT64_C(1));
}

/* The record of a row. Not finite logits make numbers that are not finite. */
void gg_baseline_encode(const float *row, uint32_t n_vocab, uint8_t *record);

/* Is a scan of one text, cut into chunks side by side? GGUF_E_INVALID: no. */
enum gguf_status gg_baseline_check_cut(const struct gguf_scan_info *info,
                                       struct gguf_error *err);

/* Are chunks begin to end - 1 of a text those of the file, and all else that
 * the scan has? GGUF_E_INVALID: what differs. */
enum gguf_status gg_baseline_check(const struct gguf_baseline *b,
                                   const struct gguf_scan_info *info,
                                   struct gguf_error *err);

/* Rows of a chunk from first (a position) on, as a base. */
struct gg_baseline_rows {
    const uint8_t *record;
    uint32_t n_vocab;
};
void gg_baseline_rows(const struct gguf_baseline *b, size_t chunk,
                      uint32_t first, struct gg_baseline_rows *rows,
                      struct gg_divergence_base *base);
/* -ln p(token) of row i. */
double gg_baseline_nll(const struct gg_baseline_rows *rows, size_t i,
                       gguf_token token);

#endif
