/* SPDX-License-Identifier: MIT */
/* session_int.h - a session inside */
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

/* Tokens in a book of windows move by a multiple of this many cells, which is a
 * multiple of the keys that attention takes together (cpu/attn.c). */
enum { GG_SESSION_STEP = 128 };

struct gguf_session {
    const struct gguf_allocator *allocator;
    const struct gguf_model *model; /* given, or variant */
    const struct gguf_model *given;
    struct gguf_model *variant; /* with the session's own positions, or NULL */
    struct gguf_meta *pairs;    /* in which it differs */
    struct gguf_backend *backend; /* the last one of the schedulers */
    struct gguf_session_graph_callback on_graph;
    uint32_t n_ctx, n_seq, n_ubatch;
    /* The most that a device says of wide (backend/backend_int.h). So that the
     * last bits do not depend on how a batch is cut, a batch of at least this
     * many tokens never runs a narrower product: narrower pieces are filled up
     * with repetitions of the last column. */
    uint32_t n_wide;

    struct gguf_ctx *cache_ctx;
    /* buffers of all kinds of memory, one for each type of buffer */
    struct gguf_buffer *cache_buffer[GGUF_SCHED_MAX_BACKENDS];
    bool memory_on_host;
    unsigned n_cache_buffers; /* 0: nothing is kept, or not placed yet */
    struct gg_memory memory[GG_N_MEMORIES];
    struct gg_cells cells;   /* of all tokens */
    struct gg_cells windows; /* of those that layers with a window may still
                              * see; empty where these follow the other one */
    struct gg_cells encoded; /* of texts that were encoded, for a decoder */
    struct gg_cells *book[GG_N_ATTN_TYPES]; /* the first two; NULL for an empty
                                         * one */
    bool shared;                            /* sequences share cells */
    bool shares; /* and a token may be of several: nothing but keys is kept */
    int32_t *floor; /* [n_seq] the first position that is still seen */

    struct gguf_adapter_use *use; /* its adapters: as many as added has */
    struct gg_model_adapters added;

    /* the graph of the last pass */
    struct gguf_ctx *ctx;
    struct gguf_sched *sched;
    struct gg_ubatch_shape shape;
    bool has_graph;
    uint32_t n_copies; /* micro-batches that may be computed at a time */
    bool in_flight;    /* some are being computed, on sched */
    struct gg_model_pass pass;
    struct gguf_tensor *states;

    /* the graph of logits */
    struct gguf_ctx *head_ctx;
    struct gguf_sched *head_sched; /* in the memory of the other */
    struct gguf_graph *head_graph;
    struct gguf_tensor *head_in, *head_out;
    size_t head_n; /* rows of it; 0: none yet */
    size_t max_logits;
    float *logits; /* max_logits rows on the host, if they are computed
                          elsewhere */

    struct gg_key_rotation turn; /* a graph for changes of positions */
    struct gg_finite_check look; /* results that are not finite */

    /* outputs of the last decode, [n_embd] each */
    float *out;
    size_t n_out, out_cap;
    bool wide;        /* its batch had n_wide tokens */
    bool out_encoded; /* it was encoded, for a decoder */
    struct gg_output_cache
        memo; /* outputs that are given again; mostly none */

    struct gg_embed embed; /* of the last batch's sequences */

    struct gguf_session_timings timings;

    /* the batch, and what is computed of it at a time */
    struct gg_batch_plan plan;
    struct gg_ubatch ubatch;
};

/* timings.c: seconds of a clock that only goes forward; and one more call of a
 * stage, of n things, that began then. */
double gg_session_clock(void);
void gg_session_count_stage(struct gguf_session_stage *stage, uint64_t n,
                            double begin);

/* rope_override.c: the model as the parameters want its positions and windows.
 * GGUF_E_INVALID, GGUF_E_UNSUPPORTED (it turns nothing, has no windows), and as
 * opening a model fails; destroying the session is fine after it. */
enum gguf_status gg_session_override_rope(struct gguf_session *s,
                                          const struct gguf_session_params *p,
                                          struct gguf_error *err);

/* logits.c: room for n outputs of a batch; what was there is lost where there
 * was too little. GGUF_E_NOMEM. */
enum gguf_status gg_session_reserve_outputs(struct gguf_session *s, size_t n,
                                            struct gguf_error *err);

/* decode.c: plan a batch that is to be decoded; fails as decoding does, before
 * anything is computed. */
enum gguf_status gg_session_plan_batch(struct gguf_session *s,
                                       const struct gguf_batch *batch,
                                       struct gguf_error *err);
/* The next micro-batch of it, whose cells are taken; *more is false after the
 * last. Fails as making room among windows' cells does. */
enum gguf_status gg_session_next_ubatch(struct gguf_session *s, bool *more,
                                        struct gguf_error *err);
/* The states of a micro-batch's graph, computed, to their places among the
 * outputs, and what is pooled to its sequence's vector; and, after the last
 * one, that these are those of the batch. */
enum gguf_status gg_session_get_outputs(struct gguf_session *s,
                                        struct gguf_error *err);
void gg_session_finish_outputs(struct gguf_session *s, bool encoded);

/* stepper.c: the passes of a batch that is planned, step by step. */
struct gg_stepper {
    struct gguf_session *s;
    struct gg_sched_stepper sched;
};
/* Begin the next one, whose graph is s->pass.graph; *more is false after the
 * last, and then outputs are there. */
enum gguf_status gg_stepper_begin_pass(struct gg_stepper *w,
                                       struct gguf_session *s, bool *more,
                                       struct gguf_error *err);
/* Compute up to node, one of the graph that comes after those of before; or all
 * of the pass: NULL. */
enum gguf_status gg_stepper_compute_to(struct gg_stepper *w,
                                       const struct gguf_tensor *node,
                                       struct gguf_error *err);

/* sequence.c: forget all of a sequence, what was encoded of it included. Fails
 * as clearing tensors does: it may be tried again. */
enum gguf_status gg_session_clear_sequence(struct gguf_session *s,
                                           uint32_t seq,
                                           struct gguf_error *err);

/* cell_alloc.c: cells of a book of windows, which n_seq sequences share or have
 * each; 0: windows need no book of their own. */
uint32_t gg_session_window_cells(const struct gguf_session *s,
                                 bool full_windows);
/* Can the planned batch be decoded with what layers with windows still have?
 * GGUF_E_UNSUPPORTED. */
enum gguf_status gg_session_check_windows(const struct gguf_session *s,
                                          struct gguf_error *err);
/* Would a sequence whose next token is at a position miss tokens up to lost?
 * Likewise. */
enum gguf_status gg_session_check_lost(const struct gguf_session *s,
                                       uint32_t seq, int32_t next,
                                       int32_t lost, struct gguf_error *err);
/* The first position that a token at this one sees in a window; and forget, in
 * layers that see windows, tokens of a sequence before one, whose cells are not
 * cleared. */
int32_t gg_session_first_visible(const struct gguf_session *s, int32_t pos);
void gg_session_drop_passed(struct gguf_session *s, uint32_t seq,
                            int32_t floor);
/* Make room for the micro-batch at the end of streams: drop what windows have
 * passed and close holes, where there is none, or where fewer cells are read
 * then. GGUF_E_FULL where windows keep too much, and as clearing does. */
enum gguf_status gg_session_make_room(struct gguf_session *s,
                                      struct gguf_error *err);
/* Close the holes of a book's stream. */
enum gguf_status gg_session_defrag_stream(struct gguf_session *s,
                                          struct gg_cells *book,
                                          uint32_t stream,
                                          struct gguf_error *err);
/* Clear rows of a book, or of a sequence's states (NULL). */
enum gguf_status gg_session_zero_rows(struct gguf_session *s,
                                      const struct gg_cells *book,
                                      uint32_t row, uint32_t n,
                                      struct gguf_error *err);
enum gguf_status gg_session_copy_rows(struct gguf_session *s,
                                      const struct gg_cells *book,
                                      uint32_t from, uint32_t to, uint32_t n,
                                      struct gguf_error *err);
/* adapters.c: make contexts for graphs with these n adapters, copied, in place
 * of those that there are, and gg_session_reserve. After a failure everything
 * is as it was; see gguf_session_set_adapters. */
enum gguf_status gg_session_apply_adapters(struct gguf_session *s,
                                           const struct gguf_adapter_use *use,
                                           size_t n, struct gguf_error *err);
/* Have graphs all that they change? GGUF_E_UNSUPPORTED. */
enum gguf_status gg_session_check_adapters(const struct gguf_session *s,
                                           struct gguf_error *err);
void gg_session_free_adapters(struct gguf_session *s);

/* graph.c: the graph for shape, built or taken again, with memory.
 * GGUF_E_NOMEM and what building and planning return. */
enum gguf_status gg_session_prepare_graph(struct gguf_session *s,
                                          const struct gg_ubatch_shape *shape,
                                          struct gguf_error *err);
/* Build all graphs anew the next time: weights of the model are of another type
 * or elsewhere. */
void gg_session_forget_graphs(struct gguf_session *s);
/* Plan the largest graphs there can be and have all that computing them takes,
 * so that decoding allocates nothing. */
enum gguf_status gg_session_reserve(struct gguf_session *s,
                                    struct gguf_error *err);
/* Show each kind of pass that there can be, described, not placed; and the
 * graphs of logits, too. */
enum gguf_status gg_session_visit_passes(struct gguf_session *s,
                                         gg_session_visit_graph_fn *see,
                                         void *user, struct gguf_error *err);
enum gguf_status gg_session_visit_graphs(struct gguf_session *s,
                                         gg_session_visit_graph_fn *see,
                                         void *user, struct gguf_error *err);
/* session.c: a session that can only be measured, and asked for graphs. m is
 * told all that it has in use, of which buffers and plans are not made. */
struct gg_measure;
enum gguf_status gg_session_measure(struct gguf_session **out,
                                    const struct gguf_model *model,
                                    const struct gguf_session_params *p,
                                    struct gg_measure *m,
                                    struct gguf_error *err);
/* memory_place.c: give tensors of all kinds of memory a place in buffers, each
 * where its layer is computed, unless they have one. GGUF_E_NOMEM, and the
 * failures of planning. */
enum gguf_status gg_session_place_memory(struct gguf_session *s,
                                         struct gguf_error *err);
/* graph_inputs.c: make the inputs of a pass of n_tok tokens and n_out outputs,
 * in its context; fill them, and those of memory, for the micro-batch. Filling
 * allocates nothing and fails as copying to a device does. */
void gg_session_make_inputs(struct gguf_session *s, int64_t n_tok,
                            int64_t n_out);
enum gguf_status gg_session_set_inputs(struct gguf_session *s,
                                       struct gguf_error *err);

/* logits.c: the graph for n rows of logits, built or taken again, with
 * memory. */
enum gguf_status gg_session_prepare_logits(struct gguf_session *s, size_t n,
                                           struct gguf_error *err);
/* graph.c: wait for the micro-batches that are being computed, before their
 * tensors or the memory that they use change. Fails as computing does. */
enum gguf_status gg_session_wait(struct gguf_session *s,
                                 struct gguf_error *err);
/* Show the graph of the pass to on_graph, and start to compute it. */
enum gguf_status gg_session_start_pass(struct gguf_session *s,
                                       struct gguf_error *err);
/* Show a graph whose inputs are set to on_graph, and compute it. */
enum gguf_status gg_session_compute(struct gguf_session *s,
                                    struct gguf_sched *sched,
                                    struct gguf_graph *graph,
                                    struct gguf_error *err);
/* The same with nodes begin to end - 1 of the pass's graph, where the session
 * has one backend. */
enum gguf_status gg_session_compute_nodes(struct gguf_session *s, size_t begin,
                                          size_t end, struct gguf_error *err);

#endif
