/* SPDX-License-Identifier: MIT */
/* deferred_close.h - leaving before the file system is done
 *
 * The process that closes the last descriptor of a file without a name waits
 * until the system has freed its blocks: about 0.1 s for each gigabyte that is
 * cached. After a job is stopped nothing depends on that, so a child process
 * takes over the wait.
 */
#ifndef TOOLS_COMMON_DEFERRED_CLOSE_H
#define TOOLS_COMMON_DEFERRED_CLOSE_H

/* Make a child that holds all descriptors of this process but standard input,
 * output and error, does nothing, and ends right after this process has. To be
 * called once, before the files are closed. Where that fails, they are closed
 * as they would have been. */
void deferred_close_begin(void);

#endif
