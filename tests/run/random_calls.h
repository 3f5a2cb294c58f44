/* SPDX-License-Identifier: MIT */
/* random_calls.h - random calls on sessions of one model, and what their
 * sequences must then hold
 *
 * Several sessions of a model, which differ in how they keep what they keep,
 * are told the same. A tale is what a sequence holds by the calls' definition.
 * A model of which token_reference.h knows every token is compared with that.
 * Of others a tale is plain while each of its tokens has seen just those before
 * it, at the distances that they have now: then a session that is told all of
 * it at once must give the same. And all sessions must give the same always.
 */
#ifndef TESTS_RUN_RANDOM_CALLS_H
#define TESTS_RUN_RANDOM_CALLS_H

#include "tests/graph/fake_backend.h"
#include "tests/run/token_reference.h"
#include "tests/model/run.h"

enum { CALLS_SEQS = 4, CALLS_MOST = 256, CALLS_KINDS = 3, CALLS_BATCH = 64 };
enum { CALLS_STATES = 4 };

struct seq_token {
    gguf_token tok;
    int32_t pos;
    const struct token_ref_kv *of; /* or NULL */
};

struct seq_content {
    struct seq_token t[CALLS_MOST];
    int n;
    bool plain;
    bool exact; /* and nothing was computed in another way: the same bits */
    gguf_token text[8]; /* encoded, for a decoder */
    int n_text;
};

/* A way of keeping. */
struct random_calls_kind {
    const char *name;
    bool unified, full_windows;
    uint32_t n_ubatch;
    bool far; /* computed and kept on a device with memory of its own */
};

/* What is to be known of a model. */
struct random_calls_model {
    const char *name; /* of tests/family; or */
    int window;       /* a llama whose even layers see a window; 0: all. With a
                       * name: how long its windows are; 0: as it says */
    bool states;      /* sequences are forgotten, copied and shifted whole */
    bool absolute;    /* a shift is something else */
    bool still;       /* and is refused */
    bool close;       /* positions have no gaps */
    struct random_calls_kind
        kind[CALLS_KINDS]; /* the first may forget what windows
                                          * passed, no other may */
    int n_kinds;
    bool closed;    /* the device's memory is closed to the process; slow */
    int most;       /* tokens of a tale */
    uint32_t more;  /* cells that streams have beyond that */
    uint32_t dtype; /* of keys and values, in all sessions */
    double apart;   /* at most, sum (a - b)^2 / sum b^2 of a row; 0: 1e-9 */
};

struct random_calls_bytes {
    unsigned char *p; /* NULL: there are none */
    uint64_t size;
};

/* What was saved of a sequence, or of all. */
struct random_calls_state {
    bool all;
    struct random_calls_bytes of[CALLS_KINDS];
    struct seq_content content[CALLS_SEQS]; /* of one: the first */
};

struct random_calls {
    const struct random_calls_model *m;
    void *file;
    struct run run[CALLS_KINDS];
    struct fake_backend fake[CALLS_KINDS]; /* devices of kinds that are far */
    struct run scratch;
    struct token_ref line;
    bool has_reference, encodes;
    int n_vocab;
    struct seq_content content[CALLS_SEQS];
    struct random_calls_state state[CALLS_STATES];
    /* what was done: calls, calls that were refused, tokens that were computed,
     * rows of logits that were compared: by bits, by lineage, with a session
     * from scratch, with another kind's */
    int n_calls, n_refused, n_tok, n_exact, n_reference, n_plain, n_kinds;
    /* states; those with the same bytes; rows after them, with the same bits */
    int n_saved, n_restored, n_same, n_lent;
    double worst;  /* sum (a - b)^2 / sum b^2 of a row */
    char why[400]; /* what went wrong */
};

/* Where chance begins. */
void random_calls_seed(uint64_t seed);

/* Open sessions; false: why says. */
bool random_calls_open(struct random_calls *s,
                       const struct random_calls_model *m);
void random_calls_close(struct random_calls *s);
/* One random call; false: something is not as it must be, and why says what. */
bool random_calls_step(struct random_calls *s);

#endif
