package settings

// maxSuggestLen bounds the names for which a suggestion is looked for.
const maxSuggestLen = 64

// Nearest returns the name of names that is closest to given by edit distance (one swap of neighbours counts as one
// edit), or "" when none is near: a third of the length of given may differ, at least one edit.
func Nearest(given string, names []string) string {
	if given == "" || len(given) > maxSuggestLen {
		return ""
	}
	best, bestDist := "", max(1, len(given)/3)+1
	for _, n := range names {
		if len(n) > maxSuggestLen || n == given {
			continue
		}
		if d := distance(given, n, bestDist); d < bestDist {
			best, bestDist = n, d
		}
	}
	return best
}

// distance is the optimal string alignment distance of a and b, ignoring ASCII case, or limit when it is not below it.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	var rows [3][maxSuggestLen + 1]int
	prev2, prev, cur := &rows[0], &rows[1], &rows[2]
	for j := 0; j <= len(b); j++ {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		low := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if lower(a[i-1]) == lower(b[j-1]) {
				cost = 0
			}
			d := min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && lower(a[i-1]) == lower(b[j-2]) && lower(a[i-2]) == lower(b[j-1]) {
				d = min(d, prev2[j-2]+1)
			}
			cur[j] = d
			low = min(low, d)
		}
		if low >= limit {
			return limit
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return min(prev[len(b)], limit)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
