/* SPDX-License-Identifier: MIT */
/* model.h - a model that is evaluated: its file, backends and session
 *
 * struct ev_model owns all of these. The threads of the pool must outlive it. A
 * tool opens the pool and the model, reads its texts, loads the weights, opens
 * the backends and begins a session:
 *
 *     ev_pool_open(&pool, o) && ev_model_open(&m, path, o) &&
 *         ev_adapters_open(&m, o) && ... &&
 *         ev_model_load_weights(&m, o, digest, pool) &&
 *         ev_model_open_backends(&m, o, pool) &&
 *         ev_model_begin_session(&m, o, &session_params, false);
 *     ev_model_close(&m);
 *     gguf_pool_destroy(pool);
 *
 * A function that returns bool returns false after it printed a message.
 */
#ifndef TOOLS_EVALUATE_MODEL_H
#define TOOLS_EVALUATE_MODEL_H

#include "tools/evaluate/options.h"

/* Create the pool that o asks for, and bind its threads and this thread to
 * processors. Call it before memory is allocated: it may set the NUMA
 * policy. */
bool ev_pool_open(struct gguf_pool **pool, const struct ev_options *o);

enum { EV_MAX_BACKENDS = 8 };
/* Open backends. Zeroed is empty. */
struct ev_backends {
    struct gguf_registry *registry;
    struct gguf_backend *list[EV_MAX_BACKENDS + 1]; /* [n], in order of
                                                     * preference; the last is
                                                     * the CPU */
    unsigned n;
    struct gguf_backend *pair[2]; /* the first two names, in their order */
};

/* Open backends.
 *
 * names        Names separated by commas. NULL: the CPU.
 * precision    enum gguf_precision, for the CPU.
 * pool         Threads of the CPU. Must outlive b. */
bool ev_backends_open(struct ev_backends *b, const struct ev_options *o,
                      const char *names, unsigned precision,
                      struct gguf_pool *pool);
void ev_backends_close(struct ev_backends *b);

/* Adapters of a session: LoRA adapters, then control vectors. */
struct ev_adapters {
    struct gguf_adapter **adapter; /* [n], owned */
    struct gguf_adapter_use *use;  /* [n], adapters and scales */
    size_t n;
};

/* A model that is evaluated. Zeroed is empty. */
struct ev_model {
    const char *path;      /* borrowed */
    const char *part_json; /* members in JSON, from a part; NULL: from file */
    const char *part_name; /* general.name from a part; NULL: from file */
    struct gguf_file *file;
    struct gguf_meta *meta; /* keys of --override-kv; NULL: none */
    struct gguf_model *model;
    struct gguf_model_info info;
    struct ev_adapters adapters;
    const char *backend_names; /* NULL: the CPU */
    unsigned precision;        /* enum gguf_precision, for the CPU */
    struct ev_backends backends;
    struct gguf_session *session;
    bool has_digest;
    struct gguf_digest digest; /* digest of the file's tensors */
};

/* Open the file at path, which is kept, with o's --override-kv. Sets
 * backend_names and precision from o; the caller may change them afterwards. */
bool ev_model_open(struct ev_model *m, const char *path,
                   const struct ev_options *o);
/* weights.c: read, lock and check all weights as o says, with progress bars.
 * digest: also hash them. A signal ends the program. */
bool ev_model_load_weights(struct ev_model *m, const struct ev_options *o,
                           bool digest, struct gguf_pool *pool);
/* Open the backends of backend_names. */
bool ev_model_open_backends(struct ev_model *m, const struct ev_options *o,
                            struct gguf_pool *pool);
/* Place the weights and begin a session on the backends. Cache, positions and
 * pooling are those of o, and so is the context if params->n_ctx is 0; all
 * other parameters are those of params. alone: use the last backend only. */
bool ev_model_begin_session(struct ev_model *m, const struct ev_options *o,
                            const struct gguf_session_params *params,
                            bool alone);
void ev_model_close(struct ev_model *m);

/* Parse and check the arguments of --override-kv for a file. path: its path,
 * for messages. *meta is NULL if the option was not given; destroy it with
 * gguf_meta_destroy(). */
bool ev_parse_overrides(const struct ev_options *o, const char *path,
                        const struct gguf_file *set, struct gguf_meta **meta);
/* If the file is an adapter, print how to use it and return true. */
bool ev_explain_adapter(const struct gguf_file *set, const char *path);

/* weights.c: move each weight to memory of the backend that computes with it,
 * or where --override-tensor says. */
bool ev_place_weights(struct ev_model *m, const struct gguf_session_params *sp,
                      const struct ev_options *o);

/* Open the adapters that o asks for. ev_model_close() closes them. */
bool ev_adapters_open(struct ev_model *m, const struct ev_options *o);
/* Add the files of o's adapters to the inputs p. */
struct gguf_paths;
void ev_add_adapter_inputs(struct gguf_paths *p, const struct ev_options *o);
/* Print a line for each adapter. */
struct json;
void ev_print_adapters(const struct ev_options *o,
                       const struct ev_adapters *l);
/* Add the members "lora" and "control_vectors". */
void ev_json_adapters(struct json *j, const struct ev_options *o,
                      const struct ev_adapters *l);

/* token_ids.c: token ids from a file. */
struct ev_ids {
    gguf_token *id; /* [n] */
    size_t n, room;
};
/* Read decimal token ids that are separated by white space.
 *
 * limit      Largest size of the file in bytes, unpacked.
 * n_vocab    Each id must be less.
 * ids        Zeroed by the caller. Free ids->id even after a failure. */
bool ev_read_ids(const char *path, uint64_t limit, size_t n_vocab,
                 struct ev_ids *ids);

#endif
