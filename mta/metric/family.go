package metric

// vec is the common part of the instruments: a description and the values by label set.
type vec[V any] struct {
	d     Desc
	tab   *table[V] // nil without labels
	only  *V        // the value of a family without labels
	fresh func() *V
}

func newVec[V any](d Desc, fresh func() *V) vec[V] {
	v := vec[V]{d: d, fresh: fresh}
	if len(d.Labels) == 0 {
		v.only = fresh()
	} else {
		v.tab = newTable[V]()
	}
	return v
}

// with returns the value of a label set. See [Counter.With] for a wrong number of values.
func (v *vec[V]) with(values []string) *V {
	if v.tab == nil {
		return v.only
	}
	if len(values) != len(v.d.Labels) {
		values = v.fit(values)
	}
	return v.tab.get(values, v.fresh)
}

// fit copies, so that values of callers of the right number need not escape.
func (v *vec[V]) fit(values []string) []string {
	fit := make([]string, len(v.d.Labels))
	copy(fit, values)
	return fit
}

func (v *vec[V]) remove(values []string) bool {
	if v.tab == nil {
		return false
	}
	if len(values) != len(v.d.Labels) {
		values = v.fit(values)
	}
	return v.tab.remove(values)
}

func (v *vec[V]) desc() *Desc { return &v.d }

func (v *vec[V]) each(fn func(values []string, val *V)) {
	if v.tab == nil {
		fn(nil, v.only)
		return
	}
	v.tab.each(fn)
}
