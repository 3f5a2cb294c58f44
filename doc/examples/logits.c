/* SPDX-License-Identifier: MIT */
/* logits MODEL PROMPT - print the most probable next token and its logit */
#include <gguf/model.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    struct gguf_session_params params = { .struct_size = sizeof params };
    struct gguf_batch batch = GGUF_BATCH_INIT;
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    struct gguf_file *file = NULL;
    struct gguf_model *model = NULL;
    struct gguf_session *session = NULL;
    struct gguf_error err = { .message = "usage: logits MODEL PROMPT" };
    const float *logits; /* [n_vocab], of the session until the next batch */
    bool ok =
        argc == 3 && !gguf_file_open(&file, argv[1], NULL, &err) &&
        !gguf_model_create(&model, file, NULL, &err) &&
        !gguf_cpu_backend_create(&params.backend, NULL, &err) &&
        !gguf_session_create(&session, model, &params, &err) &&
        !gguf_vocab_tokenize(gguf_model_vocab(model), argv[2], strlen(argv[2]),
                             GGUF_TOKENIZE_ADD_SPECIAL, &t, &err);
    batch.token = t.id, batch.n = t.n;
    ok = ok && !gguf_session_decode(session, &batch, &err) &&
         !gguf_session_logits(session, 0, 1, &logits, &err);
    uint32_t best = 0;
    for (uint32_t i = 1; ok && i < gguf_model_info(model)->n_vocab; i++)
        best = logits[i] > logits[best] ? i : best;
    ok ? printf("token %u: %.4f\n", (unsigned)best, logits[best])
       : fprintf(stderr, "%s\n", err.message);
    gguf_tokens_fini(&t);
    gguf_session_destroy(session);
    gguf_backend_destroy(params.backend);
    gguf_model_destroy(model);
    gguf_file_close(file);
    return !ok;
}
