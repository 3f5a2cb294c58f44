/* SPDX-License-Identifier: MIT */
/* hparams_int.h - what reading hyperparameters shares among its files */
#ifndef GG_MODEL_HPARAM_HPARAMS_INT_H
#define GG_MODEL_HPARAM_HPARAMS_INT_H

#include "model/weight/needs.h"

struct gg_hparams_reader {
    const struct gg_source *src;
    const struct gg_arch *arch;
    struct gg_hparams *hp;
    const struct gg_finding *report;
    const struct gguf_allocator *allocator;
    struct gg_needs needs; /* of keys */
    bool good;             /* the last array was read */
    char key[128];         /* of the last find */
};

/* The key of a row, or NULL; its name is r->key then. */
const struct gguf_kv *gg_hparams_find(struct gg_hparams_reader *r,
                                      enum gg_model_hparam id);

/* Something is wrong about the key that was found, or not found, last. */
enum gguf_status gg_hparams_fail(struct gg_hparams_reader *r,
                                 const struct gguf_kv *kv,
                                 enum gg_file_check_code code,
                                 enum gguf_status status, const char *fmt, ...)
    GG_PRINTF(5, 6);
/* "KEY is v, must be min to max" */
enum gguf_status gg_hparams_fail_range(struct gg_hparams_reader *r,
                                       enum gg_model_hparam id, uint64_t v,
                                       uint64_t min, uint64_t max);
enum gguf_status gg_hparams_fail_missing(struct gg_hparams_reader *r,
                                         enum gg_model_hparam id);

/* Are there layers without heads, or without a feed-forward part? */
bool gg_arch_has_mixed_layers(const struct gg_arch *arch);

/* hparams_rule.c: numbers against each other, and what follows from them. */
enum gguf_status gg_hparams_check_experts(struct gg_hparams_reader *r);
enum gguf_status gg_hparams_check_states(struct gg_hparams_reader *r);
enum gguf_status gg_hparams_check_norm(struct gg_hparams_reader *r);
enum gguf_status gg_hparams_check_wkv(struct gg_hparams_reader *r);
enum gguf_status gg_hparams_check_decoder(struct gg_hparams_reader *r);
enum gguf_status gg_hparams_check_heads(struct gg_hparams_reader *r);
enum gguf_status gg_hparams_check_rope(struct gg_hparams_reader *r);
/* hparams_pos.c: the rest about positions, after the rotary embedding. */
enum gguf_status gg_hparams_check_positions(struct gg_hparams_reader *r);

/* hparams_latent.c: of latent attention, before its heads, after its positions,
 * and YaRN's magnitude. */
enum gguf_status gg_hparams_check_widths(struct gg_hparams_reader *r);
enum gguf_status gg_hparams_check_indexer(struct gg_hparams_reader *r);
/* both: rope.scaling.yarn_log_multiplier is of both magnitudes, of positions
 * and of scores. */
void gg_hparams_scale_by_yarn(struct gg_hparams *hp, bool both);

/* expert_rules.c: enum gg_model_expert_gating; widths of experts. */
uint32_t gg_hparams_expert_gating(const struct gg_arch *a,
                                  const struct gg_hparams *hp);
void gg_hparams_expert_sizes(const struct gg_hparams *hp,
                             const struct gg_moe *moe, double n_ff,
                             struct gg_model_sizes *z);

/* sliding_windows.c: what tokens of each layer see, and how positions turn
 * there: after numbers of layers are read, and after the rotary embedding of
 * full layers. */
enum gguf_status gg_hparams_check_windows(struct gg_hparams_reader *r);
enum gguf_status gg_hparams_check_shared_kv(struct gg_hparams_reader *r);
enum gguf_status gg_hparams_check_window_rope(struct gg_hparams_reader *r);

/* layers.c: what each layer is. */
void gg_hparams_fill_layers(struct gg_hparams_reader *r);

#endif
