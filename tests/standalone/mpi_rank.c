/* SPDX-License-Identifier: Apache-2.0
 * A rank that calls MPI itself and sums rank + 1. With the argument kill, rank 1 dies before the
 * sum. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 1 && strcmp(argv[1], "kill") == 0 && rank == 1) raise(SIGKILL);
  const int mine = rank + 1;
  int sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("sum %d\n", sum);
  return MPI_Finalize();
}
