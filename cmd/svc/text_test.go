package main

import "strings"

// containsAll reports whether text contains every one of parts.
func containsAll(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}
