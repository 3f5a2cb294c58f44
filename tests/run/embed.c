/* SPDX-License-Identifier: MIT */
/* embed.c - models and batches for tests of sequence embeddings */
#include "config.h"
#include "tests/run/embed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must_set(enum gguf_status st)
{
    if (st != GGUF_OK)
        abort();
}

void embed_u32(struct gen *g, const char *arch, const char *key, int v)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%s", arch, key);
    must_set(gguf_meta_set_u32(g->meta, name, (uint32_t)v, NULL));
}

void embed_classifier(struct gen *g, const char *arch, int e, int n_cls,
                      bool dense)
{
    static const struct gguf_str names[] = { { "yes", 3 },
                                             { "no", 2 },
                                             { "perhaps", 7 } };
    char key[96];
    if (dense) {
        gen_tensor(g, e, e, "cls.weight");
        gen_tensor(g, e, 0, "cls.bias");
    }
    gen_tensor(g, e, n_cls, "cls.output.weight");
    gen_tensor(g, n_cls, 0, "cls.output.bias");
    snprintf(key, sizeof key, "%s.classifier.output_labels", arch);
    must_set(
        gguf_meta_set_str_array(g->meta, key, names, (size_t)n_cls, NULL));
}

void embed_mix(struct gguf_batch *b, gguf_token *tok, int32_t *seq, size_t n,
               size_t m)
{
    size_t i = 0, j = 0, k = 0;
    for (; i < n || j < m; k++) {
        const bool first = i < n && (j >= m || k % 2 == 0);
        seq[k] = first ? 0 : 1;
        tok[k] = first ? (gguf_token)((i++ * 37 + 11) % EMBED_VOCAB)
                       : (gguf_token)((j++ * 53 + 7) % EMBED_VOCAB);
    }
    b->n = k;
    b->token = tok;
    b->seq = seq;
}

size_t embed_text(const struct gguf_batch *b, int q, gguf_token *out)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        if (b->seq[i] == q)
            out[n++] = b->token[i];
    return n;
}

void *embed_llama(size_t *size)
{
    static const struct gen_spec llama = { GEN_ONE_LAYER,
                                           .n_vocab = EMBED_VOCAB };
    static struct gen g;
    gen_init(&g, 1);
    gen_model(&g, &llama);
    embed_u32(&g, "llama", "pooling_type", 3);
    void *file = gen_file(&g, GGUF_DTYPE_F32, size);
    gen_fini(&g);
    return file;
}
