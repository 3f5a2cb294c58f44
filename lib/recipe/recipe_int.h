/* SPDX-License-Identifier: MIT */
/* recipe_int.h - internals of a recipe, and the variables of its conditions */
#ifndef GG_RECIPE_RECIPE_INT_H
#define GG_RECIPE_RECIPE_INT_H

#include "base/mem.h"
#include "gguf/recipe.h"
#include "recipe/pattern.h"

/* Classes of tensors, recognised by their names. Rules select by class. */
#define GG_CLASS_LIST(X)                                                      \
    X(OUTPUT, output)                                                         \
    X(TOKEN_EMBD, token_embd)                                                 \
    X(ATTN_V, attn_v)                                                         \
    X(ATTN_K, attn_k)                                                         \
    X(ATTN_Q, attn_q)                                                         \
    X(ATTN_OUTPUT, attn_output)                                               \
    X(FFN_DOWN, ffn_down)                                                     \
    X(FFN_GATE, ffn_gate)                                                     \
    X(FFN_UP, ffn_up)                                                         \
    X(IMAGE_V, image_v)                                                       \
    X(IMAGE_QKV, image_qkv)                                                   \
    X(IMAGE_DOWN, image_down)

enum gg_recipe_class {
    GG_CLASS_OTHER,
#define X(ID, NAME) GG_CLASS_##ID,
    GG_CLASS_LIST(X)
#undef X
        GG_N_CLASSES
};

/* Variables of conditions. */
#define GG_VAR_LIST(X)                                                        \
    X(LAYERS, layers)     /* block_count of the model */                      \
    X(N, n)               /* short for layers in formulas */                  \
    X(HEADS, heads)       /* attention heads of layer 0 */                    \
    X(KV_HEADS, kv_heads) /* key/value heads of layer 0 */                    \
    X(EXPERTS, experts)   /* experts per layer; 0: none */                    \
    X(VOCAB, vocab)       /* tokens of the vocabulary; 0: unknown */          \
    X(TIED, tied)         /* 1: the token embedding is the output matrix */   \
    X(IMATRIX, imatrix)   /* 1: importance data are given */                  \
    X(SEQ, seq)           /* tensors of this class that came before */        \
    X(LAYER, layer)       /* N of "blk.N."; seq in other names */             \
    X(I, i)       /* seq; layer in the feed-forward part of a model with    \
                   * experts: as llama.cpp counts */ \
    X(COLS, cols) /* elements of a row */                                     \
    X(ROWS, rows)                                                             \
    X(MATS, mats) /* matrices of a tensor: experts, mostly */                 \
    X(EDGE,                                                                   \
      edge) /* 1: first or last block of an image model that has rules  \
                   * for them */

enum gg_recipe_var {
#define X(ID, NAME) GG_VAR_##ID,
    GG_VAR_LIST(X)
#undef X
        GG_N_VARS
};

struct gg_recipe_facts {
    int64_t var[GG_N_VARS];
    struct gguf_str arch; /* general.architecture; may be empty */
};

/* One step of a condition, for a stack machine. */
struct gg_recipe_step {
    uint8_t op;
    int64_t arg; /* a number, a variable, or an index of archs */
};

enum {
    GG_RECIPE_BASE = -1,
    GG_RECIPE_KEEP = -2
}; /* used in place of a type
    * id */

struct gg_recipe_rule {
    enum gg_recipe_class
        cls; /* GG_CLASS_OTHER: the pattern selects, or without one every
              * tensor */
    struct gg_pattern *pattern;
    int64_t type;          /* type id, GG_RECIPE_BASE or GG_RECIPE_KEEP */
    uint32_t code, n_code; /* steps of the condition; n_code 0: no condition */
    const char *text;      /* the line, trimmed and printable */
    uint32_t line;         /* line number, from 1 */
};

struct gguf_recipe {
    const struct gguf_allocator *allocator;
    struct gg_mem_arena arena; /* memory of texts */
    struct gguf_str text;
    const char *name, *about;
    int64_t base; /* type id or GG_RECIPE_KEEP */
    int ftype;    /* -1: none */
    struct gg_recipe_rule *rules;
    uint32_t n_rules;
    size_t cap_rules;
    struct gg_recipe_step *code;
    uint32_t n_code;
    size_t cap_code;
    struct gguf_str *archs;
    uint32_t n_archs;
    size_t cap_archs;
    uint32_t needs[8]; /* type ids that require importance data by this recipe,
                        * beside those that always do */
    uint32_t n_needs;
};

/* Evaluate the condition of a rule; true without one. Division by zero gives
 * zero; sums wrap. */
bool gg_recipe_rule_holds(const struct gguf_recipe *r,
                          const struct gg_recipe_rule *rule,
                          const struct gg_recipe_facts *facts);

/* Find the first rule for a tensor; *out is NULL if the base type decides.
 * Statuses: those of gg_pattern_match. */
enum gguf_status
gg_recipe_find_rule(const struct gguf_recipe *r, enum gg_recipe_class cls,
                    const char *name, const struct gg_recipe_facts *facts,
                    const struct gg_recipe_rule **out, struct gguf_error *err);

/* recipe_expr.c: compile the text of a condition and append it to r->code;
 * *n_code receives its length. lets are names of conditions compiled before.
 * line and off locate the text for messages. */
struct gg_recipe_let {
    struct gguf_str name;
    uint32_t code, n_code;
};
enum gguf_status gg_recipe_compile_condition(struct gguf_recipe *r,
                                             struct gguf_str text,
                                             const struct gg_recipe_let *lets,
                                             uint32_t n_lets, uint32_t line,
                                             uint64_t off, uint32_t *n_code,
                                             struct gguf_error *err);

/* Is the word a variable or a keyword of the language? */
bool gg_recipe_is_reserved(struct gguf_str word);

/* recipe_tab.c, generated from share/recipes: the presets. */
struct gg_recipe_preset {
    const char *name, *about, *text;
    const char *names; /* name, aliases and number, separated by blanks */
};
extern const struct gg_recipe_preset gg_recipe_presets[];
extern const unsigned gg_recipe_n_presets;

#endif
