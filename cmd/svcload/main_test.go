package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestDirect(t *testing.T) {
	var out bytes.Buffer
	args := strings.Fields("direct --count 300 --concurrency 4 --domains 20 --skew 1 --sizes 500,20000 --per-session 50")
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatal(err)
	}
	var rep report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		t.Fatal(err)
	}
	if rep.Accepted != 300 || rep.Delivered != 300 || rep.Lost+rep.Duplicated+rep.Corrupted != 0 || rep.Rate <= 0 || len(rep.Sizes) != 2 {
		t.Errorf("%s", out.String())
	}
}

func TestBadArguments(t *testing.T) {
	for _, args := range []string{"", "sideways", "direct --sizes x", "direct --sizes 0", "direct extra", "direct --count=x"} {
		if err := run(t.Context(), strings.Fields(args), new(bytes.Buffer)); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}
