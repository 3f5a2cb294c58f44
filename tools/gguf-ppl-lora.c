/* gguf-ppl-lora.c - the adapters that a model is evaluated with */
#include "config.h"
#include "tools/gguf-ppl.h"
#include "tools/common/msg.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool open_one(struct gguf_adapter **out, const struct gguf_model *model,
                     const char *path)
{
    struct gguf_file *file;
    struct gguf_error err;
    enum gguf_status st = gguf_file_open(&file, path, NULL, &err);
    if (st == GGUF_OK) {
        st = gguf_adapter_open(out, model, file, NULL, &err);
        gguf_file_close(file);
    }
    if (st != GGUF_OK)
        msg_fail(path, &err);
    return st == GGUF_OK;
}

bool ppl_loras_open(struct ppl_loras *l, const struct ppl_options *o,
                    const struct gguf_model *model)
{
    const struct scaled_list *s = &o->loras;
    if (!s->n)
        return true;
    l->use = msg_must(calloc(s->n, sizeof *l->use));
    l->adapter = msg_must(calloc(s->n, sizeof(struct gguf_adapter *)));
    l->n = s->n;
    for (size_t i = 0; i < s->n; i++) {
        if (!open_one(&l->adapter[i], model, s->file[i].path))
            return false;
        l->use[i].adapter = l->adapter[i];
        l->use[i].scale = s->file[i].scale;
    }
    return true;
}

void ppl_loras_close(struct ppl_loras *l)
{
    for (size_t i = 0; i < l->n; i++)
        gguf_adapter_destroy(l->adapter[i]);
    free(l->adapter);
    free(l->use);
    *l = (struct ppl_loras){ 0 };
}

void ppl_print_loras(const struct ppl_options *o, const struct ppl_loras *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct scaled *s = &o->loras.file[i];
        const struct gguf_adapter_info *info =
            gguf_adapter_get_info(l->adapter[i]);
        char name[256];
        gguf_text_escape(name, sizeof name,
                         (struct gguf_str){ s->path, strlen(s->path) });
        printf("lora    %s: %zu weights, rank %" PRId64, name, info->n_weights,
               info->rank_min);
        if (info->rank_max > info->rank_min)
            printf(" to %" PRId64, info->rank_max);
        printf(", scale %g\n", (double)s->scale);
    }
}

void ppl_json_loras(struct json *j, const struct ppl_options *o,
                    const struct ppl_loras *l)
{
    json_open(j, "lora", '[');
    for (size_t i = 0; i < l->n; i++) {
        json_open(j, NULL, '{');
        json_strz(j, "file", o->loras.file[i].path);
        json_f64(j, "scale", (double)o->loras.file[i].scale);
        json_close(j);
    }
    json_close(j);
}
