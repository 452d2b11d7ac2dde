package control

import "time"

// Bounds of quotas. A short period keeps queues short, and short the first period
// after a change, in which the kernel gives too much. A quota or a period is a
// whole number of microseconds, so a step is at most 1/20000 of a core.
const (
	leastQuota  = time.Millisecond // that kernels take
	shortPeriod = 20 * time.Millisecond
	longPeriod  = time.Second // that kernels take
)

// Quota is how a share of cores is written to a control group of either version:
// so much time in each period. Small shares have longer periods; what is below a
// thousandth of a core gets that.
func Quota(share float64) (quota, period time.Duration) {
	quota = microseconds(share * float64(shortPeriod))
	if quota >= leastQuota {
		return quota, shortPeriod
	}
	if share*float64(longPeriod) <= float64(leastQuota) {
		return leastQuota, longPeriod
	}
	return leastQuota, microseconds(float64(leastQuota) / share)
}

// microseconds rounds nanoseconds.
func microseconds(ns float64) time.Duration {
	return time.Duration(ns/1000+0.5) * time.Microsecond
}
