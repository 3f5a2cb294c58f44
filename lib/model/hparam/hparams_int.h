/* SPDX-License-Identifier: MIT */
/* hparams_int.h - state and functions shared by the files that read
 * hyperparameters
 *
 * gg_hparams_load() (hparams.c) reads all keys into struct gg_hparams, then
 * calls the checks below in order. Each check compares numbers with each other
 * and computes what follows from them. */
#ifndef GG_MODEL_HPARAM_HPARAMS_INT_H
#define GG_MODEL_HPARAM_HPARAMS_INT_H

#include "model/weight/needs.h"

struct gg_hparams_reader {
    const struct gg_source *src;
    const struct gg_arch *arch;
    struct gguf_str prefix; /* begin of the architecture's keys, without dot */
    struct gg_hparams *hp;
    const struct gg_finding *report;
    const struct gguf_allocator *allocator;
    struct gg_needs needs; /* required and optional keys */
    bool good;             /* the last array was read without a fault */
    char key[128];         /* name of the key of the last gg_hparams_find() */
};

/* Find the key of a row. Sets r->key to its name. NULL: the file lacks it. */
const struct gguf_kv *gg_hparams_find(struct gg_hparams_reader *r,
                                      enum gg_model_hparam id);

/* Report a fault of the key that was last looked up. kv: the key; NULL: it is
 * missing. Returns GGUF_OK if the fault became a finding. */
enum gguf_status gg_hparams_fail(struct gg_hparams_reader *r,
                                 const struct gguf_kv *kv,
                                 enum gg_file_check_code code,
                                 enum gguf_status status, const char *fmt, ...)
    GGUF_PRINTF(5, 6);
/* Report "KEY is v, must be min to max". */
enum gguf_status gg_hparams_fail_range(struct gg_hparams_reader *r,
                                       enum gg_model_hparam id, uint64_t v,
                                       uint64_t min, uint64_t max);
enum gguf_status gg_hparams_fail_missing(struct gg_hparams_reader *r,
                                         enum gg_model_hparam id);

/* Does the architecture have layers without heads, or layers without a
 * feed-forward part? */
bool gg_arch_has_mixed_layers(const struct gg_arch *arch);

/* hparams_rule.c: check numbers against each other and compute what follows. */
enum gguf_status gg_hparams_check_experts(struct gg_hparams_reader *r);
/* after the layers are filled */
enum gguf_status gg_hparams_check_expert_layers(struct gg_hparams_reader *r);
enum gguf_status gg_hparams_check_states(struct gg_hparams_reader *r);
enum gguf_status gg_hparams_check_norm(struct gg_hparams_reader *r);
enum gguf_status gg_hparams_check_wkv(struct gg_hparams_reader *r);
enum gguf_status gg_hparams_check_decoder(struct gg_hparams_reader *r);
enum gguf_status gg_hparams_check_heads(struct gg_hparams_reader *r);
enum gguf_status gg_hparams_check_rope(struct gg_hparams_reader *r);
/* hparams_pos.c: check the remaining keys about positions, after the rotary
 * embedding. */
enum gguf_status gg_hparams_check_positions(struct gg_hparams_reader *r);

/* hparams_latent.c: check the widths of latent attention (before heads), the
 * indexer (after positions), and apply YaRN's magnitude. */
enum gguf_status gg_hparams_check_widths(struct gg_hparams_reader *r);
enum gguf_status gg_hparams_check_indexer(struct gg_hparams_reader *r);
/* both: rope.scaling.yarn_log_multiplier applies to the magnitude of the rotary
 * embedding and to that of scores. */
void gg_hparams_scale_by_yarn(struct gg_hparams *hp, bool both);

/* expert_rules.c: gating of a model (enum gg_model_expert_gating); widths of
 * experts. */
uint32_t gg_hparams_expert_gating(const struct gg_arch *a,
                                  const struct gg_hparams *hp);
void gg_hparams_expert_sizes(const struct gg_hparams *hp,
                             const struct gg_moe *moe,
                             const struct gg_model_layer *layer,
                             struct gg_model_sizes *z);

/* sliding_windows.c: type of attention and range of each layer, layers that
 * share keys, and the rotary embedding in windows. Called after the number of
 * layers is read, and after the rotary embedding of full layers. */
enum gguf_status gg_hparams_check_windows(struct gg_hparams_reader *r);
enum gguf_status gg_hparams_check_shared_kv(struct gg_hparams_reader *r);
enum gguf_status gg_hparams_check_window_rope(struct gg_hparams_reader *r);

/* layers.c: fill the parts of each layer. */
void gg_hparams_fill_layers(struct gg_hparams_reader *r);

#endif
