package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
)

// writers is how many threads of a busy server wait for the disk at any time: one for each spool.
const writers = 2

// setThreads sets how many threads run Go code at once (cli.tsv, SVC_MAIN_THREADS). Without the variable it is one for
// each processor and one for each spool: a thread that waits for a flush still counts as running for a while, and with
// few processors that leaves them idle. With the run time's own variable GOMAXPROCS nothing is changed.
func setThreads() error {
	v := os.Getenv("SVC_MAIN_THREADS")
	if v == "" {
		if os.Getenv("GOMAXPROCS") == "" {
			runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + writers)
		}
		return nil
	}
	n, err := threads("SVC_MAIN_THREADS", v)
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(n)
	return nil
}

// parallelism is what policies are told about the machine (functions.tsv, available_parallelism). It is asked before
// setThreads.
func parallelism() (int, error) {
	if v := os.Getenv("SVC_AVAILABLE_PARALLELISM"); v != "" {
		return threads("SVC_AVAILABLE_PARALLELISM", v)
	}
	return runtime.GOMAXPROCS(0), nil
}

func threads(name, v string) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > 4096 {
		return 0, fmt.Errorf("%s=%q: want a number from 1 to 4096", name, v)
	}
	return n, nil
}
