/* SPDX-License-Identifier: MIT */
/* mksentence.c - small folders of encoders and rerankers, and their states and
 * scores in double precision
 *
 *   mksentence reranker DIR       a BertForSequenceClassification of one label
 *   mksentence folder CLASS DIR   the folder of a class, as the tests of
 *                                 families describe it
 *   mksentence dense DIR ROWS COLS  model.safetensors with linear.weight
 *   mksentence values NAME N      the first N numbers of the tensor NAME
 *   mksentence states ID:TYPE...  states of the reranker's tokens
 *   mksentence score ID:TYPE...   its score
 *
 * Numbers are printed one a line. States and score follow the definition of
 * BERT (Devlin et al., arXiv:1810.04805) with the weights of the folder, which
 * are a function of their names.
 */
#include "config.h"
#include "tests/convert/bert.h"
#include "tests/convert/folder_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { E = 32, FF = 48, LAYERS = 2, HEADS = 4, MOST = 64 };

/* ---- folders ---- */

static const char config[] =
    "{\"architectures\":[\"BertForSequenceClassification\"],"
    "\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":2,"
    "\"num_attention_heads\":4,\"vocab_size\":260,"
    "\"max_position_embeddings\":64,\"layer_norm_eps\":1e-12,"
    "\"type_vocab_size\":2,\"hidden_act\":\"gelu_new\","
    "\"id2label\":{\"0\":\"LABEL_0\"}}";
static const char tensors[] = BERT_TENSORS BERT_DENSE("pooler.dense", 32, 32)
    BERT_DENSE("classifier", 1, 32);

static struct folder folder;

static void make_reranker(const char *dir)
{
    folder_begin(&folder, dir);
    folder_text(&folder, "config.json", config);
    folder_tensors(&folder, tensors, LAYERS, 1);
    folder_weights(&folder, "F32", 1);
    folder_wordpiece(&folder, true);
}

static void make_dense(const char *dir, const char *rows, const char *cols)
{
    char line[80];
    folder_begin(&folder, dir);
    snprintf(line, sizeof line, "linear.weight %s %s\n", rows, cols);
    folder_tensors(&folder, line, 1, 1);
    folder_weights(&folder, "F32", 1);
}

/* ---- BERT ---- */

static double get_weight(const char *name, const char *part, int layer,
                         size_t i)
{
    char full[100];
    if (layer < 0)
        snprintf(full, sizeof full, "%s.%s", name, part);
    else
        snprintf(full, sizeof full, "encoder.layer.%d.%s.%s", layer, name,
                 part);
    return (double)folder_value(full, i);
}

/* y [rows] = W x + b */
static void apply_linear(const char *name, int layer, const double *x,
                         int cols, double *y, int rows)
{
    for (int r = 0; r < rows; r++) {
        y[r] = get_weight(name, "bias", layer, (size_t)r);
        for (int c = 0; c < cols; c++)
            y[r] += get_weight(name, "weight", layer, (size_t)(r * cols + c)) *
                    x[c];
    }
}

static void apply_norm(const char *name, int layer, double *x)
{
    double mean = 0, var = 0;
    for (int i = 0; i < E; i++)
        mean += x[i] / E;
    for (int i = 0; i < E; i++)
        var += (x[i] - mean) * (x[i] - mean) / E;
    for (int i = 0; i < E; i++)
        x[i] = (x[i] - mean) / sqrt(var + 1e-12) *
                   get_weight(name, "weight", layer, (size_t)i) +
               get_weight(name, "bias", layer, (size_t)i);
}

static double q[MOST][E], k[MOST][E], v[MOST][E];

/* Attention of one head and one token to all n tokens, at y. */
static void attend_head(int head, int token, int n, double *y)
{
    enum { D = E / HEADS };
    const int at = head * D;
    double p[MOST], sum = 0;
    for (int t = 0; t < n; t++) {
        double dot = 0;
        for (int i = 0; i < D; i++)
            dot += q[token][at + i] * k[t][at + i];
        sum += p[t] = exp(dot / sqrt(D));
    }
    for (int i = 0; i < D; i++)
        y[at + i] = 0;
    for (int t = 0; t < n; t++)
        for (int i = 0; i < D; i++)
            y[at + i] += p[t] / sum * v[t][at + i];
}

/* gelu_new of transformers */
static double apply_gelu(double x)
{
    return 0.5 * x *
           (1 + tanh(sqrt(2 / 3.14159265358979323846) *
                     (x + 0.044715 * x * x * x)));
}

static void run_layer(int layer, double x[MOST][E], int n)
{
    for (int t = 0; t < n; t++) {
        apply_linear("attention.self.query", layer, x[t], E, q[t], E);
        apply_linear("attention.self.key", layer, x[t], E, k[t], E);
        apply_linear("attention.self.value", layer, x[t], E, v[t], E);
    }
    for (int t = 0; t < n; t++) {
        double a[E], y[E], h[FF];
        for (int i = 0; i < HEADS; i++)
            attend_head(i, t, n, a);
        apply_linear("attention.output.dense", layer, a, E, y, E);
        for (int i = 0; i < E; i++)
            x[t][i] += y[i];
        apply_norm("attention.output.LayerNorm", layer, x[t]);
        apply_linear("intermediate.dense", layer, x[t], E, h, FF);
        for (int i = 0; i < FF; i++)
            h[i] = apply_gelu(h[i]);
        apply_linear("output.dense", layer, h, FF, y, E);
        for (int i = 0; i < E; i++)
            x[t][i] += y[i];
        apply_norm("output.LayerNorm", layer, x[t]);
    }
}

static void print_numbers(const double *x, int n)
{
    for (int i = 0; i < n; i++)
        printf("%.17g\n", x[i]);
}

static int compute_text(bool score, char **arg, int n)
{
    static double x[MOST][E];
    for (int t = 0; t < n; t++) {
        char *end;
        const size_t id = strtoul(arg[t], &end, 10);
        if (n > MOST || *end != ':')
            return 2;
        const size_t type = strtoul(end + 1, NULL, 10);
        for (size_t i = 0; i < E; i++)
            x[t][i] = get_weight("embeddings.word_embeddings", "weight", -1,
                                 id * E + i) +
                      get_weight("embeddings.token_type_embeddings", "weight",
                                 -1, type * E + i) +
                      get_weight("embeddings.position_embeddings", "weight",
                                 -1, (size_t)t * E + i);
        apply_norm("embeddings.LayerNorm", -1, x[t]);
    }
    for (int i = 0; i < LAYERS; i++)
        run_layer(i, x, n);
    if (score) {
        double pooled[E], y;
        apply_linear("pooler.dense", -1, x[0], E, pooled, E);
        for (int i = 0; i < E; i++)
            pooled[i] = tanh(pooled[i]);
        apply_linear("classifier", -1, pooled, E, &y, 1);
        print_numbers(&y, 1);
    } else {
        print_numbers(x[0], n * E);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";
    if (!strcmp(what, "reranker")) {
        make_reranker(argv[2]);
    } else if (!strcmp(what, "folder") && argc == 4) {
        folder_text_make(folder_text_find(argv[2]), argv[3], false, &folder);
        folder_weights(&folder, "F32", 1);
    } else if (!strcmp(what, "dense") && argc == 5) {
        make_dense(argv[2], argv[3], argv[4]);
    } else if (!strcmp(what, "values") && argc == 4) {
        for (uint64_t i = 0; i < strtoull(argv[3], NULL, 10); i++)
            printf("%.17g\n", (double)folder_value(argv[2], i));
    } else if (!strcmp(what, "states") || !strcmp(what, "score")) {
        return compute_text(!strcmp(what, "score"), argv + 2, argc - 2);
    } else {
        return 2;
    }
    return 0;
}
