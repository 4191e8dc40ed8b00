package jsonl_test

import (
	"fmt"
	"log"
	"os"

	"example.com/svc/mta/journal/jsonl"
)

func Example() {
	dir, err := os.MkdirTemp("", "segments")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	w, err := jsonl.Open(jsonl.Config{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	for i := range 3 {
		if err := w.Write(fmt.Appendf(nil, `{"n":%d}`, i)); err != nil {
			log.Print(err) // the line is kept and tried again
		}
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	for line, err := range jsonl.Dir(dir) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", line)
	}
	// Output:
	// {"n":0}
	// {"n":1}
	// {"n":2}
}
