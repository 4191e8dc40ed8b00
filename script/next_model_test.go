package script

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Random changes and walks: each walk returns what is in the table at its beginning and was not removed before its
// turn, once.
func TestNextModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	key := func() string {
		if r.IntN(3) > 0 {
			return fmt.Sprint(r.IntN(30) - 3)
		}
		return fmt.Sprintf("'k%d'", r.IntN(30))
	}
	var b strings.Builder
	for i := range 3000 {
		if i%50 == 0 { // tables behave differently while they are small
			b.WriteString("t, names = {}, {}\n")
		}
		switch r.IntN(8) {
		case 0:
			fmt.Fprintf(&b, "set(%s, nil)\n", key())
		case 1, 2, 3, 4, 5:
			fmt.Fprintf(&b, "set(%s, %d)\n", key(), r.IntN(9)+1)
		default:
			fmt.Fprintf(&b, "walk(%d)\n", r.IntN(12)+2)
		}
	}
	_, err := eval(t, `local t, names = {}, {} -- names: what t has, found without a walk over t
local function set(k, v)
  t[k] = v
  for i, n in ipairs(names) do if n == k then table.remove(names, i) break end end
  if v then table.insert(names, k) end
end
local function walk(mod)
  local want, seen, n = {}, {}, 0
  for _, k in ipairs(names) do want[k] = true end
  for k, v in next, t do
    assert(want[k] and not seen[k] and t[k] == v, k)
    seen[k], n = true, n + 1
    if n % mod == 0 then set(k, nil) else t[k] = v + 1 end
    if n % 5 == 0 then
      for other in next, t do
        if not seen[other] then set(other, nil) want[other] = nil break end
      end
    end
  end
  for k in pairs(want) do assert(seen[k], k) end
end
`+b.String())
	if err != nil {
		t.Error(err)
	}
}
