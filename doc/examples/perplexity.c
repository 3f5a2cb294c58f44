/* SPDX-License-Identifier: MIT */
/* perplexity MODEL <TEXT - print the perplexity of a text of up to 1 MiB */
#include <gguf/model.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    static char text[1 << 20];
    struct gguf_session_params params = { .struct_size = sizeof params };
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    struct gguf_ppl ppl = GGUF_PPL_INIT;
    struct gguf_file *file = NULL;
    struct gguf_model *model = NULL;
    struct gguf_session *session = NULL;
    struct gguf_error err = { .message = "usage: perplexity MODEL <TEXT" };
    const size_t size = fread(text, 1, sizeof text, stdin);

    /* The first call that fails ends the chain; err says why. */
    const bool ok =
        argc == 2 && !gguf_file_open(&file, argv[1], NULL, &err) &&
        !gguf_model_create(&model, file, NULL, &err) &&
        !gguf_cpu_backend_create(&params.backend, NULL, &err) &&
        !gguf_session_create(&session, model, &params, &err) &&
        !gguf_vocab_tokenize(gguf_model_vocab(model), text, size,
                             GGUF_TOKENIZE_ADD_SPECIAL, &t, &err) &&
        !gguf_ppl_run(session, t.id, t.n, NULL, &ppl, &err);
    if (ok)
        printf("%.4f +/- %.4f\n", gguf_ppl_value(&ppl), gguf_ppl_error(&ppl));
    else
        fprintf(stderr, "%s\n", err.message);

    gguf_tokens_fini(&t);
    gguf_session_destroy(session);
    gguf_backend_destroy(params.backend);
    gguf_model_destroy(model);
    gguf_file_close(file);
    return !ok;
}
