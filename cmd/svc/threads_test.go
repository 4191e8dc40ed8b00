package main

import (
	"runtime"
	"testing"
)

func TestThreads(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	t.Setenv("GOMAXPROCS", "")
	t.Setenv("SVC_MAIN_THREADS", "")
	if err := setThreads(); err != nil || runtime.GOMAXPROCS(0) != before+writers {
		t.Errorf("%d threads, %v", runtime.GOMAXPROCS(0), err)
	}
	t.Setenv("SVC_MAIN_THREADS", "3")
	if err := setThreads(); err != nil || runtime.GOMAXPROCS(0) != 3 {
		t.Errorf("%d threads, %v", runtime.GOMAXPROCS(0), err)
	}
	t.Setenv("GOMAXPROCS", "3")
	t.Setenv("SVC_MAIN_THREADS", "")
	if err := setThreads(); err != nil || runtime.GOMAXPROCS(0) != 3 {
		t.Errorf("%d threads, %v", runtime.GOMAXPROCS(0), err)
	}
	for _, bad := range []string{"0", "x", "-1", "5000"} {
		t.Setenv("SVC_MAIN_THREADS", bad)
		t.Setenv("SVC_AVAILABLE_PARALLELISM", bad)
		if setThreads() == nil {
			t.Errorf("SVC_MAIN_THREADS=%s was accepted", bad)
		}
		if _, err := parallelism(); err == nil {
			t.Errorf("SVC_AVAILABLE_PARALLELISM=%s was accepted", bad)
		}
	}
	t.Setenv("SVC_AVAILABLE_PARALLELISM", "7")
	if n, err := parallelism(); n != 7 || err != nil {
		t.Errorf("parallelism %d, %v", n, err)
	}
}
