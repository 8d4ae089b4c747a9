/*
 * launcher.h
 *	  The launcher: starts a maintenance worker in every database that has
 *	  tq.
 */
#ifndef TQ_LAUNCHER_H
#define TQ_LAUNCHER_H

extern void tq_launcher_register(void);
extern PGDLLEXPORT void tq_launcher_main(Datum arg);
extern PGDLLEXPORT void tq_launcher_probe_main(Datum arg);
extern void tq_launcher_probe(void);

#endif /* TQ_LAUNCHER_H */
