/* SPDX-License-Identifier: MIT */
/* quantize FROM TO PRESET - write a model in other types, show progress */
#include <gguf/gguf.h>
#include <stdio.h>

static bool show(void *user, uint64_t done, uint64_t total)
{
    fprintf(stderr, "\r%s: %3.0f%%", (const char *)user,
            100.0 * (double)done / (double)total);
    return false; /* true stops the job */
}

int main(int argc, char **argv)
{
    struct gguf_quant_params params = { .struct_size = sizeof params };
    struct gguf_recipe *recipe = NULL;
    struct gguf_quant *job = NULL;
    struct gguf_error err;
    enum gguf_status st;

    if (argc != 4) {
        fprintf(stderr, "usage: %s FROM TO PRESET\n", argv[0]);
        return 2;
    }
    st = gguf_recipe_preset(&recipe, argv[3], NULL, &err);
    params.recipe = recipe;
    params.progress = (struct gguf_progress_callback){ show, argv[2] };
    if (!st)
        st = gguf_quant_create(&job, argv[1], &params, &err);
    if (!st)
        st = gguf_quant_run(job, argv[2], NULL, &err);
    fprintf(stderr, "\n%s", st ? err.message : "");

    gguf_quant_destroy(job);
    gguf_recipe_destroy(recipe);
    return st != GGUF_OK;
}
