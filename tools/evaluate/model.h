/* SPDX-License-Identifier: MIT */
/* model.h - a model that is evaluated: its file, backends and session
 *
 * struct ev_model owns all of that. A tool opens the pool and the model, reads
 * its texts, loads the weights, opens backends and begins a session:
 *
 *     ev_pool_open(&pool, o) && ev_model_open(&m, path, o) &&
 *         ev_adapters_open(&m, o) && ... && ev_model_load(&m, o, pool) &&
 *         ev_model_start(&m, o, pool, &session_params);
 *     ev_model_close(&m);
 *     gguf_pool_destroy(pool);
 *
 * A function that returns false has printed a message.
 */
#ifndef TOOLS_EVALUATE_MODEL_H
#define TOOLS_EVALUATE_MODEL_H

#include "tools/evaluate/options.h"

/* Create the pool that o asks for, its threads and this one bound. Call it
 * first: it decides where memory lies. */
bool ev_pool_open(struct gguf_pool **pool, const struct ev_options *o);

/* Backends in order of preference; the CPU is the last. Zeroed is empty. */
enum { EV_MAX_BACKENDS = 8 };
struct ev_backends {
    struct gguf_registry *registry;
    struct gguf_backend *list[EV_MAX_BACKENDS + 1];
    unsigned n;
    struct gguf_backend *pair[2]; /* the first two that were named */
};

/* Open the backends with these names (NULL: the CPU), the CPU in a precision.
 * names are separated by commas. */
bool ev_backends_open(struct ev_backends *b, const struct ev_options *o,
                      const char *names, unsigned precision,
                      struct gguf_pool *pool);
void ev_backends_close(struct ev_backends *b);

/* Adapters of a session, LoRA before control vectors. */
struct ev_adapters {
    struct gguf_adapter **adapter;
    struct gguf_adapter_use *use;
    size_t n;
};

/* A model that is evaluated. Zeroed is empty. */
struct ev_model {
    const char *path;       /* kept */
    const char *noted;      /* its members in JSON, where a part's note has
                             * them in place of the file; or NULL */
    const char *noted_name; /* its general.name then */
    struct gguf_file *file;
    struct gguf_meta *meta; /* --override-kv, or NULL */
    struct gguf_model *model;
    struct gguf_model_info info;
    struct ev_adapters adapters;
    const char *backend_names; /* NULL: the CPU */
    unsigned precision;        /* enum gguf_precision, of the CPU */
    struct ev_backends backends;
    struct gguf_session *session;
    bool has_digest;
    struct gguf_digest digest; /* digest of the file's tensors */
};

/* Open the file, which is computed with o's backends and precision unless the
 * tool changes these members afterwards. */
bool ev_model_open(struct ev_model *m, const char *path,
                   const struct ev_options *o);
/* weights.c: read, hash, lock and check all weights, as o says, with progress
 * bars; a signal ends the program. digest: hash them. */
bool ev_model_load(struct ev_model *m, const struct ev_options *o, bool digest,
                   struct gguf_pool *pool);
/* Open the model's backends. */
bool ev_model_backends(struct ev_model *m, const struct ev_options *o,
                       struct gguf_pool *pool);
/* Begin a session on the backends, with o's context and cache and the rest of
 * params. alone: on the last backend only. */
bool ev_model_start(struct ev_model *m, const struct ev_options *o,
                    const struct gguf_session_params *params, bool alone);
void ev_model_close(struct ev_model *m);

/* The pairs of --override-kv, for the model at path; *meta is NULL without
 * any, and the caller's to destroy. */
bool ev_override(const struct ev_options *o, const char *path,
                 const struct gguf_file *set, struct gguf_meta **meta);
/* If the file is an adapter, print how it is used, and return true. */
bool ev_tell_adapter(const struct gguf_file *set, const char *path);

/* weights.c: move weights to where the backends of m compute with them, and to
 * where --override-tensor says. */
bool ev_place_weights(struct ev_model *m, const struct gguf_session_params *sp,
                      const struct ev_options *o);

/* Open the adapters that o asks for. They are closed with the model. */
bool ev_adapters_open(struct ev_model *m, const struct ev_options *o);
/* Note their files as inputs. */
struct gguf_paths;
void ev_note_adapters(struct gguf_paths *p, const struct ev_options *o);
/* A line for each adapter; members of a JSON object. */
struct json;
void ev_print_adapters(const struct ev_options *o,
                       const struct ev_adapters *l);
void ev_json_adapters(struct json *j, const struct ev_options *o,
                      const struct ev_adapters *l);

/* token_ids.c: token ids of a file, decimal, separated by white space, each
 * less than n_vocab. The caller frees ids->id even after a failure. */
struct ev_ids {
    gguf_token *id;
    size_t n, room;
};
bool ev_read_ids(const char *path, uint64_t limit, size_t n_vocab,
                 struct ev_ids *ids);

#endif
