/* textfile.h - reading a text that is evaluated */
#ifndef TOOLS_TEXTFILE_H
#define TOOLS_TEXTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole of a text file: plain or gzip, "-" for standard input; of more than
 * limit bytes, unpacked, it is refused. *data is owned, free(), and NULL after
 * a failure. false: a message was printed. */
bool textfile_read(const char *path, uint64_t limit, char **data,
                   size_t *size);

#endif
