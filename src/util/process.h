/*
 * process.h
 *	  The server's processes.
 */
#ifndef TQ_PROCESS_H
#define TQ_PROCESS_H

extern int tq_process_background_workers(void);

#endif /* TQ_PROCESS_H */
