package limit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Result tells how a take went. Source: flows TH-2, TH-3.
type Result struct {
	// Throttled says that nothing was taken.
	Throttled bool
	// Limit is how many may happen at once from rest.
	Limit uint64
	// Remaining is how many may still happen now.
	Remaining uint64
	// ResetAfter is when the rate is at rest again, rounded up to whole seconds.
	ResetAfter time.Duration
	// RetryAfter is when the same take would be admitted, rounded up to whole seconds; 0 unless Throttled.
	RetryAfter time.Duration
	// Wait is RetryAfter without the rounding, where the keeper knows it; at most RetryAfter and never 0 when Throttled.
	Wait time.Duration
}

var (
	// ErrLeaseLost says that a lease had expired and was pruned before it was extended.
	ErrLeaseLost = errors.New("lease was lost")
	// ErrNeverAdmitted says that more was asked at once than the burst of the rate can ever admit.
	ErrNeverAdmitted = errors.New("more than the burst of the rate")
)

// Keeper keeps rates and leases under names. [Local] is the one of this process. It is safe for concurrent use.
type Keeper interface {
	// Take takes n operations from the rate r under key, all or none. Throttling is told by the Result; the error is
	// for a rate that cannot be served (see Rate.Check), n below 0, [ErrNeverAdmitted], or the transport of a shared
	// keeper. With n 0 it only looks.
	Take(ctx context.Context, key string, r Rate, n int) (Result, error)
	// Lease takes one of l.N leases under key for ttl. ok is false when there are too many.
	Lease(ctx context.Context, key string, l Limit, ttl time.Duration) (lease Lease, ok bool, err error)
}

// Lease is one of a limited number. It is safe for concurrent use.
type Lease interface {
	// Extend makes the lease last for its ttl from now. The error is [ErrLeaseLost] when it is no longer held.
	Extend(ctx context.Context) error
	// Release gives the lease back. Further calls do nothing.
	Release()
}

// TakeAll takes one operation from each rate, smallest first (E3), and stops at the first that throttles: its result
// and key are returned. What was taken from smaller rates before stays taken. With an empty list, or when all admit,
// the key is empty and the result is that of the last.
func TakeAll(ctx context.Context, k Keeper, rates []Named) (Result, string, error) {
	if !slices.IsSortedFunc(rates, compareNamed) {
		rates = slices.Clone(rates)
		SortRates(rates)
	}
	var res Result
	for i := range rates {
		var err error
		res, err = k.Take(ctx, rates[i].Key, rates[i].Rate, 1)
		if err != nil {
			return res, rates[i].Key, fmt.Errorf("taking from rate %q: %w", rates[i].Key, err)
		}
		if res.Throttled {
			return res, rates[i].Key, nil
		}
	}
	return res, "", nil
}

// LeaseAll leases each limit, smallest first (E3), as one lease. When one has too many, or fails, those taken before
// are released and its key is returned with ok false. An empty list gives a lease of nothing.
func LeaseAll(ctx context.Context, k Keeper, limits []NamedLimit, ttl time.Duration) (lease Lease, key string, ok bool, err error) {
	if !slices.IsSortedFunc(limits, compareLimits) {
		limits = slices.Clone(limits)
		SortLimits(limits)
	}
	held := make(leases, 0, len(limits))
	for i := range limits {
		l, ok, err := k.Lease(ctx, limits[i].Key, limits[i].Limit, ttl)
		if err != nil || !ok {
			held.Release()
			if err != nil {
				err = fmt.Errorf("leasing %q: %w", limits[i].Key, err)
			}
			return nil, limits[i].Key, false, err
		}
		held = append(held, l)
	}
	return held, "", true, nil
}

// leases are held together.
type leases []Lease

// Extend extends each; the errors are joined.
func (ls leases) Extend(ctx context.Context) error {
	var errs []error
	for _, l := range ls {
		if err := l.Extend(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Release releases each, the last taken first.
func (ls leases) Release() {
	for _, l := range slices.Backward(ls) {
		l.Release()
	}
}

// TakeWait takes n from the rate r under key, waiting as long as it throttles (flows TH-9). slept says whether it had
// to. The error is that of Take, or of ctx.
func TakeWait(ctx context.Context, k Keeper, key string, r Rate, n int) (slept bool, err error) {
	for {
		res, err := k.Take(ctx, key, r, n)
		if err != nil || !res.Throttled {
			return slept, err
		}
		slept = true
		t := time.NewTimer(cmp.Or(res.Wait, res.RetryAfter, time.Second))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return slept, context.Cause(ctx)
		}
	}
}
