/*
 * group_graph.c
 *	  Reads a task group as a graph that can be drawn.
 *
 * A task of another group is not shown, as the caller may have no right to read
 * it; a node says how many of its dependencies are outside.
 */
#include "postgres.h"

#include "../core/names.h"
#include "../picture/picture.h"
#include "../storage/tasks.h"
#include "../util/util.h"
#include "api.h"

/* Raises TQ400 for a group that is too large to draw. */
static void
check_size(const TqGroup *group, int found, int max, const char *what)
{
	if (found > max)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("task group \"%s\" is too large for a picture",
					tq_slug_text(&group->task_group_id)),
			 errdetail("It has more than %d %s.", max, what),
			 errhint(
				 "See tq.group_progress() and tq.failure_overview instead.")));
}

static TqNode
node_of(const TqGroupTask *task)
{
	TqNode node = {.name = tq_label(task->name, TQ_LABEL_MAX),
				   .remark = "",
				   .tasks = 1,
				   .runs = Max(task->run_id, 0)};

	node.count[task->state] = 1;
	if (task->is_delayed)
		node.remark = "delayed";
	else if (task->reason != TQ_RESOLVED_NONE &&
			 task->reason != TQ_RESOLVED_COMPLETED &&
			 task->reason != TQ_RESOLVED_FAILED)
		node.remark = tq_resolved_name(task->reason);
	else if (task->progress != NULL)
		node.remark = tq_label(task->progress, TQ_LABEL_MAX);
	return node;
}

/* Returns the index of a task, or -1 if it is not in the group. */
static int
index_of_task(const TqGroupPicture *picture, int64 task)
{
	int low = 0;
	int high = picture->ntasks - 1;

	while (low <= high)
	{
		int middle = (low + high) / 2;
		int64 id = picture->tasks[middle].id;

		if (id == task)
			return middle;
		if (id < task)
			low = middle + 1;
		else
			high = middle - 1;
	}
	return -1;
}

/* Adds the dependencies of a group to its graph. */
static void
add_edges(const TqGroup *group, TqGroupPicture *picture)
{
	TqGraph *graph = &picture->graph;
	int n;
	TqGroupDependency *rows =
		tq_group_rows_dependencies(group, TQ_GRAPH_EDGES + 1, &n);

	check_size(group, n, TQ_GRAPH_EDGES, "dependencies");
	graph->edges = palloc(sizeof(TqGraphEdge) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		int from = index_of_task(picture, rows[i].required);
		int to = index_of_task(picture, rows[i].dependent);

		if (to < 0)
			continue;
		if (from < 0)
			graph->nodes[to].outside++;
		else if (from == to)
			graph->nodes[to].is_held |=
				graph->nodes[to].count[TQ_STATE_UNSCHEDULED] > 0;
		else
			graph->edges[graph->nedges++] = (TqGraphEdge){from, to, 1};
	}
}

/* Reads the graph of a group. */
void
tq_group_graph(const TqGroup *group, TqGroupPicture *picture)
{
	TqGraph *graph = &picture->graph;
	int n;

	memset(picture, 0, sizeof(TqGroupPicture));
	picture->tasks = tq_group_rows_tasks(group, TQ_GRAPH_TASKS + 1, &n);
	check_size(group, n, TQ_GRAPH_TASKS, "tasks");
	picture->ntasks = graph->nnodes = graph->tasks = n;
	graph->nodes = palloc(sizeof(TqNode) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		graph->nodes[i] = node_of(&picture->tasks[i]);
		graph->count[picture->tasks[i].state]++;
	}
	add_edges(group, picture);
	tq_graph_finish(graph);
}

/* Reads the runs of a group whose tasks were read. */
void
tq_group_gantt(const TqGroup *group, const TqGroupPicture *picture,
			   TqGantt *gantt)
{
	int n;
	TqGroupRun *runs = tq_group_rows_runs(group, TQ_GANTT_RUNS + 1, &n);

	check_size(group, n, TQ_GANTT_RUNS, "runs");
	gantt->now = tq_clock_now();
	gantt->bars = palloc(sizeof(TqBar) * Max(n, 1));
	gantt->nbars = 0;
	for (int i = 0; i < n; i++)
	{
		const TqGroupRun *run = &runs[i];
		int task = index_of_task(picture, run->task);

		if (task < 0)
			continue;
		gantt->bars[gantt->nbars++] =
			(TqBar){.worker = run->worker_id == NULL || run->started == 0
								  ? NULL
								  : tq_label(psprintf("%s/%s",
													  run->worker_group,
													  run->worker_id),
											 2 * TQ_LABEL_MAX),
					.name = picture->graph.nodes[task].name,
					.progress = run->state == TQ_STATE_RUNNING
									? picture->graph.nodes[task].remark
									: "",
					.run_id = run->run_id,
					.state = run->state,
					.reason = run->reason == TQ_RESOLVED_NONE
								  ? NULL
								  : tq_resolved_name(run->reason),
					.claimable = run->claimable,
					.started = run->worker_id == NULL ? 0 : run->started,
					.resolved = run->resolved};
	}
}
