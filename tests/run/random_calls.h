/* SPDX-License-Identifier: MIT */
/* random_calls.h - random calls on several sessions of one model, checked after
 * every call
 *
 * The sessions differ in how they keep keys and values (random_calls_kind).
 * Every session gets the same calls. struct seq_content says what each sequence
 * must hold after them, by the definition of the calls. Logits are compared
 *
 *     with token_reference.h, for the llama that it evaluates;
 *     with a session that decodes a whole sequence from scratch, while the
 *     content is plain (see below);
 *     between the sessions, always.
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
    const struct token_ref_kv *of; /* reference keys and values; NULL: none */
};

/* The tokens that a sequence must hold. */
struct seq_content {
    struct seq_token t[CALLS_MOST];
    int n;
    /* Each token attended to exactly the tokens before it, at the distances
     * that they have now: decoding from scratch gives the same logits. */
    bool plain;
    /* plain, and every logit was computed in the same way: the same bits. */
    bool exact;
    gguf_token text[8]; /* encoder input of an encoder-decoder */
    int n_text;         /* tokens of text */
};

/* How a session keeps keys and values. */
struct random_calls_kind {
    const char *name;
    bool unified, full_windows;
    uint32_t n_ubatch;
    bool far; /* compute and keep on a fake device with memory of its own */
};

/* A model and what its sessions can do. */
struct random_calls_model {
    const char *name; /* model of tests/family; NULL: a generated llama */
    /* Sliding window in tokens. Generated llama: of the even layers; 0: none.
     * A model with a name: replaces its window; 0: its own. */
    int window;
    bool states;   /* recurrent: only whole sequences are removed or copied */
    bool absolute; /* a shift changes logits: positions are absolute */
    bool still;    /* shift and divide are refused */
    bool close;    /* positions must be consecutive */
    /* Only the first may drop tokens that have left a sliding window. */
    struct random_calls_kind kind[CALLS_KINDS];
    int n_kinds;
    bool closed;    /* protect the fake device's memory; slow */
    int most;       /* largest number of tokens of a sequence */
    uint32_t more;  /* cells of a stream beyond that number */
    uint32_t dtype; /* type of keys and values in every session */
    double apart;   /* bound of a row's NMSE, see run_nmse(); 0: 1e-9 */
};

struct random_calls_bytes {
    unsigned char *p; /* malloc'ed; NULL: nothing saved */
    uint64_t size;
};

/* A saved state of one sequence or of all. */
struct random_calls_state {
    bool all; /* the state has every sequence */
    struct random_calls_bytes of[CALLS_KINDS];
    struct seq_content content[CALLS_SEQS]; /* [0] only, unless all */
};

struct random_calls {
    const struct random_calls_model *m;
    void *file;
    struct run run[CALLS_KINDS];
    struct fake_backend fake[CALLS_KINDS]; /* used by kinds that are far */
    struct run scratch;                    /* decodes from scratch */
    struct token_ref line;
    bool has_reference; /* line is set */
    bool encodes;       /* encoder-decoder */
    int n_vocab;
    struct seq_content content[CALLS_SEQS];
    struct random_calls_state state[CALLS_STATES];
    int n_calls, n_refused, n_tok;
    /* rows of logits compared: by bits; with the reference; with a session from
     * scratch; between two kinds */
    int n_exact, n_reference, n_plain, n_kinds;
    /* states saved, restored, equal to the saved bytes, and rows equal by bits
     * after restoring */
    int n_saved, n_restored, n_same, n_lent;
    double worst;  /* largest NMSE of a row */
    char why[400]; /* why a call failed */
};

/* Seed the random calls. */
void random_calls_seed(uint64_t seed);

/* Open the sessions. false: s->why says what failed. */
bool random_calls_open(struct random_calls *s,
                       const struct random_calls_model *m);
void random_calls_close(struct random_calls *s);
/* Make one random call and check its results. false: s->why names the fault. */
bool random_calls_step(struct random_calls *s);

#endif
