/* SPDX-License-Identifier: MIT */
/* session_int.h - members of a session, and functions that its files share */
#ifndef GG_RUN_SESSION_INT_H
#define GG_RUN_SESSION_INT_H

#include "gguf/session_check.h"
#include "gguf/session_layered.h"
#include "gguf/session_memory.h"
#include "gguf/session_sequence.h"
#include "gguf/session_state.h"
#include "gguf/session_timings.h"
#include "run/embed.h"
#include "run/finite_check.h"
#include "run/output_cache.h"
#include "run/memory_int.h"
#include "run/key_rotation.h"
#include "sched/sched_int.h"

/* Step, in cells, by which tokens move in a table of windows. It is a multiple
 * of the number of keys that attention takes together (cpu/attn.c). */
enum { GG_SESSION_STEP = 128 };

struct gguf_session {
    const struct gguf_allocator *allocator;
    const struct gguf_model *model; /* model in use: given or variant */
    const struct gguf_model *given;
    /* given with the session's own RoPE and windows; NULL: none */
    struct gguf_model *variant;
    struct gguf_meta *pairs; /* keys in which variant differs */
    /* backend in host memory; last of the schedulers' */
    struct gguf_backend *backend;
    struct gguf_session_graph_callback on_graph;
    uint32_t n_ctx, n_seq, n_ubatch;
    /* Least number of columns of a product whose last bits do not depend on
     * it: the largest number of the session's devices
     * (gguf_device_min_invariant_batch). A batch of at least n_wide tokens
     * never runs a narrower product; columns that are missing repeat the last
     * one. */
    uint32_t n_wide;

    struct gguf_ctx *cache_ctx;
    /* buffers of all kinds of memory, one for each buffer type */
    struct gguf_buffer *cache_buffer[GGUF_SCHED_MAX_BACKENDS];
    bool memory_on_host;
    /* number of buffers; 0: no memory, or not placed yet */
    unsigned n_cache_buffers;
    struct gg_memory memory[GG_N_MEMORIES];
    struct gg_cells cells; /* table of all tokens */
    /* table of tokens that layers with a window may still see; empty if these
     * layers follow cells */
    struct gg_cells windows;
    /* table of texts that were encoded for a decoder */
    struct gg_cells encoded;
    /* the first two tables; an empty one is NULL */
    struct gg_cells *table[GG_N_ATTN_TYPES];
    bool shared; /* sequences share cells */
    /* a token may have several sequences: only keys and values are kept */
    bool shares;
    int32_t *first_visible; /* [n_seq], first position that is still visible */

    /* adapters in use; their number is added's */
    struct gguf_adapter_use *use;
    struct gg_model_adapters added;

    /* the graph of the last pass */
    struct gguf_ctx *ctx;
    struct gguf_sched *sched;
    struct gg_ubatch_shape shape;
    bool has_graph;
    /* micro-batches that may be computed at the same time */
    uint32_t n_copies;
    bool in_flight; /* sched is computing some */
    struct gg_model_pass pass;
    struct gguf_tensor *states;

    /* the graph of logits */
    struct gguf_ctx *head_ctx;
    /* scheduler of this graph; shares the memory of sched */
    struct gguf_sched *head_sched;
    struct gguf_graph *head_graph;
    struct gguf_tensor *head_in, *head_out;
    size_t head_n; /* rows of the graph; 0: no graph yet */
    size_t max_logits;
    /* max_logits rows in host memory, if another device computes them */
    float *logits;

    /* graph that rotates keys to other positions */
    struct gg_key_rotation key_rotation;
    struct gg_finite_check finite_check;

    /* outputs of the last decode, n_embd floats each */
    float *out;
    size_t n_out, out_cap;
    bool wide;        /* the batch had n_wide tokens or more */
    bool out_encoded; /* the batch was encoded for a decoder */
    /* outputs of earlier batches; empty most of the time */
    struct gg_output_cache output_cache;

    struct gg_embed embed; /* pooled vectors of the last batch */

    struct gguf_session_timings timings;

    /* the current batch and micro-batch */
    struct gg_batch_plan plan;
    struct gg_ubatch ubatch;
};

/* timings.c: seconds of a monotonic clock; count a call that began at begin
 * and worked on n things. */
double gg_session_clock(void);
void gg_session_count_stage(struct gguf_session_stage *stage, uint64_t n,
                            double begin);

/* rope_override.c: make the variant of the model for the RoPE and window
 * settings of the parameters. After a failure the session can be destroyed.
 *
 * GGUF_E_INVALID: a setting is out of range. GGUF_E_UNSUPPORTED: the model has
 * no use for it. Otherwise fails as gguf_model_create() does. */
enum gguf_status gg_session_override_rope(struct gguf_session *s,
                                          const struct gguf_session_params *p,
                                          struct gguf_error *err);

/* logits.c: make room for n outputs. If there was too little, earlier outputs
 * are lost. GGUF_E_NOMEM. */
enum gguf_status gg_session_reserve_outputs(struct gguf_session *s, size_t n,
                                            struct gguf_error *err);

/* decode.c: plan a batch. Nothing is computed. Fails as gguf_session_decode()
 * does before it computes. */
enum gguf_status gg_session_plan_batch(struct gguf_session *s,
                                       const struct gguf_batch *batch,
                                       struct gguf_error *err);
/* Take cells for the next micro-batch of the planned batch. *more is false
 * after the last one. Fails as gg_session_make_room() does. */
enum gguf_status gg_session_next_ubatch(struct gguf_session *s, bool *more,
                                        struct gguf_error *err);
/* Copy the computed states of a micro-batch to their outputs, and add those of
 * pooled tokens to their sequences. After the last micro-batch, mark the
 * outputs as complete. */
enum gguf_status gg_session_get_outputs(struct gguf_session *s,
                                        struct gguf_error *err);
void gg_session_finish_outputs(struct gguf_session *s, bool encoded);

/* stepper.c: compute the passes of a planned batch step by step. */
struct gg_stepper {
    struct gguf_session *s;
    struct gg_sched_stepper sched;
};
/* Begin the next pass. Its graph is s->pass.graph. After the last pass *more
 * is false, and the outputs are complete. */
enum gguf_status gg_stepper_begin_pass(struct gg_stepper *w,
                                       struct gguf_session *s, bool *more,
                                       struct gguf_error *err);
/* Compute the graph up to and with node, which must come after the earlier
 * ones. NULL: to the end of the pass. */
enum gguf_status gg_stepper_compute_to(struct gg_stepper *w,
                                       const struct gguf_tensor *node,
                                       struct gguf_error *err);

/* sequence.c: clear a sequence, with its encoded text. If a device cannot
 * clear its memory, call it again. */
enum gguf_status gg_session_clear_sequence(struct gguf_session *s,
                                           uint32_t seq,
                                           struct gguf_error *err);

/* cell_alloc.c: number of cells for a table of windows, of each sequence or
 * shared by n_seq of them. 0: windows follow the table of all tokens. */
uint32_t gg_session_window_cells(const struct gguf_session *s,
                                 bool full_windows);
/* Check that layers with a window have not forgotten tokens that the planned
 * batch would see. GGUF_E_UNSUPPORTED: they have. */
enum gguf_status gg_session_check_windows(const struct gguf_session *s,
                                          struct gguf_error *err);
/* Check that a sequence whose next token is at position next would see no
 * token up to position lost. GGUF_E_UNSUPPORTED: it would. */
enum gguf_status gg_session_check_lost(const struct gguf_session *s,
                                       uint32_t seq, int32_t next,
                                       int32_t lost, struct gguf_error *err);
/* First position that a token at pos sees in a window. Then: remove tokens of
 * a sequence before position floor from the table of windows, without clearing
 * their cells. */
int32_t gg_session_first_visible(const struct gguf_session *s, int32_t pos);
void gg_session_drop_passed(struct gguf_session *s, uint32_t seq,
                            int32_t floor);
/* Make room for the micro-batch at the end of its streams: remove tokens that
 * all windows have passed and defragment, if there is too little room or if
 * fewer cells are then read. GGUF_E_FULL: the tokens of windows take too much
 * room. Also fails as clearing tensors does. */
enum gguf_status gg_session_make_room(struct gguf_session *s,
                                      struct gguf_error *err);
/* Defragment a stream of a table, with the rows of its tokens. */
enum gguf_status gg_session_defrag_stream(struct gguf_session *s,
                                          struct gg_cells *table,
                                          uint32_t stream,
                                          struct gguf_error *err);
/* Clear rows of the tensors that follow a table, or, for NULL, of those with
 * one row for each sequence. Then: copy such rows. */
enum gguf_status gg_session_zero_rows(struct gguf_session *s,
                                      const struct gg_cells *table,
                                      uint32_t row, uint32_t n,
                                      struct gguf_error *err);
enum gguf_status gg_session_copy_rows(struct gguf_session *s,
                                      const struct gg_cells *table,
                                      uint32_t from, uint32_t to, uint32_t n,
                                      struct gguf_error *err);
/* adapters.c: replace the adapters by n others, which are copied, make
 * contexts for their graphs, and call gg_session_reserve(). A failure changes
 * nothing. Fails as gguf_session_set_adapters() does. */
enum gguf_status gg_session_apply_adapters(struct gguf_session *s,
                                           const struct gguf_adapter_use *use,
                                           size_t n, struct gguf_error *err);
/* Check that the graphs have every weight that an adapter changes.
 * GGUF_E_UNSUPPORTED: one is missing. */
enum gguf_status gg_session_check_adapters(const struct gguf_session *s,
                                           struct gguf_error *err);
void gg_session_free_adapters(struct gguf_session *s);

/* graph.c: build the graph of a shape, or reuse the last one, and give it
 * memory. GGUF_E_NOMEM. Also fails as building and planning do. */
enum gguf_status gg_session_prepare_graph(struct gguf_session *s,
                                          const struct gg_ubatch_shape *shape,
                                          struct gguf_error *err);
/* Build all graphs again before the next use. To be called when weights have
 * changed their types or places. */
void gg_session_forget_graphs(struct gguf_session *s);
/* Plan the largest graphs and allocate all memory for computing them, so that
 * decoding allocates nothing. */
enum gguf_status gg_session_reserve(struct gguf_session *s,
                                    struct gguf_error *err);
/* Call see with each kind of pass, described but not placed. The second
 * function also calls it with the graphs of logits. */
enum gguf_status gg_session_visit_passes(struct gguf_session *s,
                                         gg_session_visit_graph_fn *see,
                                         void *user, struct gguf_error *err);
enum gguf_status gg_session_visit_graphs(struct gguf_session *s,
                                         gg_session_visit_graph_fn *see,
                                         void *user, struct gguf_error *err);
/* session.c: make a session that computes nothing. It can be measured and
 * asked for its graphs. m counts all memory that it would have; buffers and
 * plans are counted but not allocated. */
struct gg_measure;
enum gguf_status gg_session_measure(struct gguf_session **out,
                                    const struct gguf_model *model,
                                    const struct gguf_session_params *p,
                                    struct gg_measure *m,
                                    struct gguf_error *err);
/* memory_place.c: place the tensors of all kinds of memory in buffers, each
 * where its layer is computed. Tensors that are placed stay. GGUF_E_NOMEM.
 * Also fails as planning does. */
enum gguf_status gg_session_place_memory(struct gguf_session *s,
                                         struct gguf_error *err);
/* graph_inputs.c: make the inputs of a pass of n_tok tokens and n_out outputs
 * in its context. The second function fills them, and the inputs of memory,
 * for the micro-batch; it allocates nothing and fails as copying to a device
 * does. */
void gg_session_make_inputs(struct gguf_session *s, int64_t n_tok,
                            int64_t n_out);
enum gguf_status gg_session_set_inputs(struct gguf_session *s,
                                       struct gguf_error *err);

/* logits.c: build the graph of n rows of logits, or reuse the last one, and
 * give it memory. */
enum gguf_status gg_session_prepare_logits(struct gguf_session *s, size_t n,
                                           struct gguf_error *err);
/* graph.c: wait until no micro-batch is being computed. To be called before
 * their tensors or memory change. Fails as computing does. */
enum gguf_status gg_session_wait(struct gguf_session *s,
                                 struct gguf_error *err);
/* Call on_graph with the graph of the pass, then start to compute it. */
enum gguf_status gg_session_start_pass(struct gguf_session *s,
                                       struct gguf_error *err);
/* Call on_graph with a graph whose inputs are set, then compute it. */
enum gguf_status gg_session_compute(struct gguf_session *s,
                                    struct gguf_sched *sched,
                                    struct gguf_graph *graph,
                                    struct gguf_error *err);
/* Call on_graph with the graph of the pass, then compute its nodes begin to
 * end - 1. Only for sessions with one backend. */
enum gguf_status gg_session_compute_nodes(struct gguf_session *s, size_t begin,
                                          size_t end, struct gguf_error *err);

#endif
