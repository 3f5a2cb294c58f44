/* SPDX-License-Identifier: MIT */
/* story.h - random calls on sessions of one model, and what their sequences
 * must then hold
 *
 * Several sessions of a model, which differ in how they keep what they keep,
 * are told the same. A tale is what a sequence holds by the calls' definition.
 * A model of which lineage.h knows every token is compared with that. Of others
 * a tale is plain while each of its tokens has seen just those before it, at
 * the distances that they have now: then a session that is told all of it at
 * once must give the same. And all sessions must give the same always.
 */
#ifndef TESTS_RUN_STORY_H
#define TESTS_RUN_STORY_H

#include "tests/graph/island.h"
#include "tests/run/lineage.h"
#include "tests/model/run.h"

enum { STORY_SEQS = 4, STORY_MOST = 256, STORY_KINDS = 3, STORY_BATCH = 64 };
enum { STORY_STATES = 4 };

struct story_token {
    gguf_token tok;
    int32_t pos;
    const struct line_token *of; /* or NULL */
};

struct story_tale {
    struct story_token t[STORY_MOST];
    int n;
    bool plain;
    bool exact; /* and nothing was computed in another way: the same bits */
    gguf_token text[8]; /* encoded, for a decoder */
    int n_text;
};

/* A way of keeping. */
struct story_kind {
    const char *name;
    bool unified, full_windows;
    uint32_t n_ubatch;
    bool far; /* computed and kept on a device with memory of its own */
};

/* What is to be known of a model. */
struct story_model {
    const char *name; /* of tests/family; or */
    int window;       /* a llama whose even layers see a window; 0: all. With a
                       * name: how long its windows are; 0: as it says */
    bool states;      /* sequences are forgotten, copied and shifted whole */
    bool absolute;    /* a shift is something else */
    bool still;       /* and is refused */
    bool close;       /* positions have no gaps */
    struct story_kind kind[STORY_KINDS]; /* the first may forget what windows
                                          * passed, no other may */
    int n_kinds;
    bool closed;    /* the device's memory is closed to the process; slow */
    int most;       /* tokens of a tale */
    uint32_t more;  /* cells that streams have beyond that */
    uint32_t dtype; /* of keys and values, in all sessions */
    double apart;   /* at most, sum (a - b)^2 / sum b^2 of a row; 0: 1e-9 */
};

struct story_bytes {
    unsigned char *p; /* NULL: there are none */
    uint64_t size;
};

/* What was saved of a sequence, or of all. */
struct story_state {
    bool all;
    struct story_bytes of[STORY_KINDS];
    struct story_tale tale[STORY_SEQS]; /* of one: the first */
};

struct story {
    const struct story_model *m;
    void *file;
    struct run run[STORY_KINDS];
    struct island island[STORY_KINDS]; /* devices of kinds that are far */
    struct run scratch;
    struct line_model line;
    bool lined, encodes;
    int n_vocab;
    struct story_tale tale[STORY_SEQS];
    struct story_state state[STORY_STATES];
    /* what was done: calls, calls that were refused, tokens that were computed,
     * rows of logits that were compared: by bits, by lineage, with a session
     * from scratch, with another kind's */
    int n_calls, n_refused, n_tok, n_exact, n_lined, n_plain, n_kinds;
    /* states; those with the same bytes; rows after them, with the same bits */
    int n_saved, n_restored, n_same, n_lent;
    double worst;  /* sum (a - b)^2 / sum b^2 of a row */
    char why[400]; /* what went wrong */
};

/* Where chance begins. */
void story_seed(uint64_t seed);

/* Open sessions; false: why says. */
bool story_open(struct story *s, const struct story_model *m);
void story_close(struct story *s);
/* One random call; false: something is not as it must be, and why says what. */
bool story_go_on(struct story *s);

#endif
