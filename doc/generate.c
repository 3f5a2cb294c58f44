/* SPDX-License-Identifier: MIT */
/* generate MODEL PROMPT [TOKENS [TEMPERATURE [TOP_K [TOP_P [SEED]]]]] continues
 * PROMPT. A TEMPERATURE of 0 (default) takes the most probable token always. */
#include <gguf/model.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct choice {
    float p;
    gguf_token id;
};

static int more_probable(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;
    return x->p != y->p ? (x->p < y->p) - (x->p > y->p) : x->id - y->id;
}

/* Random number in [0, 1), from the generator splitmix64. */
static double next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* Draw one of n tokens. Candidates are the k most probable ones (0: all), and
 * of these the fewest that reach top_p of the sum of their probabilities. */
static gguf_token sample(const float *logits, size_t n, struct choice *c,
                         double temp, size_t k, double top_p, uint64_t *rng)
{
    double total = 0, kept = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        c[i] = (struct choice){ logits[i], (gguf_token)i };
    qsort(c, n, sizeof *c, more_probable);
    n = temp <= 0 ? 1 : k && k < n ? k : n;
    const float best = c[0].p;
    for (size_t i = 0; i < n; i++)
        total += c[i].p = (float)exp(n > 1 ? (c[i].p - best) / temp : 0);
    for (k = 0; k < n && (k == 0 || kept < top_p * total);)
        kept += c[k++].p;
    const double at = next_random(rng) * kept;
    for (size_t i = 0; i + 1 < k; i++)
        if ((sum += c[i].p) > at)
            return c[i].id;
    return c[k - 1].id;
}

int main(int argc, char **argv)
{
    const long left = argc > 3 ? atol(argv[3]) : 32;
    const double temp = argc > 4 ? atof(argv[4]) : 0;
    const size_t top_k = argc > 5 ? strtoul(argv[5], NULL, 10) : 0;
    const double top_p = argc > 6 ? atof(argv[6]) : 1;
    uint64_t rng = argc > 7 ? strtoull(argv[7], NULL, 10) : 1;
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_batch batch = GGUF_BATCH_INIT;
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    struct gguf_file *f = NULL;
    struct gguf_model *m = NULL;
    struct gguf_session *s = NULL;
    struct gguf_error err = { .message = "which model, which prompt?" };
    if (argc < 3 || gguf_file_open(&f, argv[1], NULL, &err) ||
        gguf_model_create(&m, f, NULL, &err) ||
        gguf_cpu_backend_create(&p.backend, NULL, &err) ||
        gguf_session_create(&s, m, &p, &err) ||
        gguf_vocab_tokenize(gguf_model_vocab(m), argv[2], strlen(argv[2]),
                            GGUF_TOKENIZE_ADD_SPECIAL, &t, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    const struct gguf_vocab *v = gguf_model_vocab(m);
    const size_t n = gguf_model_info(m)->n_vocab;
    struct choice *c = malloc(n * sizeof *c);
    gguf_token id;
    batch.token = t.id;
    batch.n = t.n;
    int bad = !c;
    for (long i = 0; !bad && i < left; i++, batch.token = &id, batch.n = 1) {
        const float *logits;
        char text[256];
        bad = gguf_session_decode(s, &batch, &err) ||
              gguf_session_logits(s, 0, 1, &logits, &err);
        id = bad ? 0 : sample(logits, n, c, temp, top_k, top_p, &rng);
        const size_t size = gguf_vocab_piece(v, id, 0, text, sizeof text);
        if (bad || gguf_vocab_is_eog(v, id))
            break;
        fwrite(text, 1, size < sizeof text ? size : sizeof text, stdout);
    }
    if (bad)
        fprintf(stderr, "\n%s\n", c ? err.message : "out of memory");
    free(c);
    gguf_tokens_fini(&t);
    gguf_session_destroy(s);
    gguf_backend_destroy(p.backend);
    gguf_model_destroy(m);
    gguf_file_close(f);
    return bad;
}
