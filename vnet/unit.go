package vnet

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Rate is bit/s of Ethernet frames (14-byte header included).
type Rate int64

// Unbounded is the rate of a maximum nobody stated: the substrate decides.
const Unbounded Rate = math.MaxInt64

// Decimal rate units, as links are sold.
const (
	BitPerSecond Rate = 1
	Kbit              = 1000 * BitPerSecond
	Mbit              = 1000 * Kbit
	Gbit              = 1000 * Mbit
)

// BytesPerSecond converts for the kernel, which counts bytes.
func (r Rate) BytesPerSecond() uint64 { return uint64(max(r, 0)) / 8 }

// WholeBytesDown rounds to whole bytes per second, the kernel's unit, and never
// to more than the rate; WholeBytesUp never to less.
func (r Rate) WholeBytesDown() Rate { return r / 8 * 8 }

// WholeBytesUp rounds up; see WholeBytesDown.
func (r Rate) WholeBytesUp() Rate { return (r + 7) / 8 * 8 }

// Mbps returns the rate in Mbit/s, for people.
func (r Rate) Mbps() float64 { return float64(r) / 1e6 }

func (r Rate) String() string {
	if r == Unbounded {
		return "unbounded"
	}
	return formatUnit(int64(r), 1000, []string{"bit", "kbit", "Mbit", "Gbit", "Tbit"})
}

// Bytes is a size.
type Bytes int64

// Binary sizes.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
)

func (b Bytes) String() string {
	if b != 0 && b%1024 == 0 {
		return formatUnit(int64(b), 1024, []string{"B", "KiB", "MiB", "GiB", "TiB"})
	}
	return formatUnit(int64(b), 1000, []string{"B", "KB", "MB", "GB", "TB"})
}

// CPU is processor time in thousandths of one core.
type CPU int64

// Core is the whole of one core.
const Core CPU = 1000

func (c CPU) String() string {
	return strconv.FormatFloat(float64(c)/float64(Core), 'f', -1, 64)
}

// formatUnit prints n with the largest unit that keeps it exact.
func formatUnit(n, base int64, units []string) string {
	unit := 0
	for unit+1 < len(units) && n != 0 && n%base == 0 {
		n /= base
		unit++
	}
	return strconv.FormatInt(n, 10) + units[unit]
}

// Unit words, lower case. Rates are decimal; "bps" is bits (unlike in tc).
var (
	rateUnits = map[string]float64{
		"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12,
		"bps": 1, "kbps": 1e3, "mbps": 1e6, "gbps": 1e9, "tbps": 1e12,
		"bit/s": 1, "kbit/s": 1e3, "mbit/s": 1e6, "gbit/s": 1e9, "tbit/s": 1e12,
	}
	byteUnits = map[string]float64{
		"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
		"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	}
)

// ParseRate reads "100Mbit", "1.5 Gbit/s" or "20Mbps" (bits, decimal). A
// number without a unit is refused rather than guessed.
func ParseRate(s string) (Rate, error) {
	if instead := otherRate(s); instead != "" {
		return 0, fmt.Errorf("%q %s", s, instead)
	}
	n, err := parseQuantity(s, rateUnits, "a rate such as 100Mbit or 1.5Gbit")
	return Rate(n), err
}

// ParseBytes reads "256MiB" (binary) or "4GB" (decimal).
func ParseBytes(s string) (Bytes, error) {
	if instead := otherSize(s); instead != "" {
		return 0, fmt.Errorf("%q %s", s, instead)
	}
	n, err := parseQuantity(s, byteUnits, "a size such as 256MiB or 4GB")
	return Bytes(n), err
}

// ParseCPU reads cores, such as "0.5", to thousandths.
func ParseCPU(s string) (CPU, error) {
	cores, err := strconv.ParseFloat(s, 64)
	if err != nil || !(cores >= 0 && cores <= 1e6) {
		if instead := otherCPU(s); instead != "" {
			return 0, fmt.Errorf("%q %s", s, instead)
		}
		return 0, fmt.Errorf("%q is not a number of cores such as 0.5", s)
	}
	return CPU(math.Round(cores * float64(Core))), nil
}

var errTooLarge = errors.New("is too large")

// parseQuantity reads NUMBER UNIT; want says what was expected instead.
func parseQuantity(s string, units map[string]float64, want string) (int64, error) {
	number, unit := splitQuantity(s)
	unit = strings.ToLower(unit)
	factor, known := units[unit]
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || !known || math.IsNaN(value) || value < 0 {
		return 0, fmt.Errorf("%q is not %s", s, want)
	}
	// 2^53: the largest range in which every integer is exact in a float64,
	// and nine petabit/s is enough for anybody.
	if value*factor > 1<<53 {
		return 0, fmt.Errorf("%q %w", s, errTooLarge)
	}
	return int64(math.Round(value * factor)), nil
}

// splitQuantity cuts the unit off a number, as it is written.
func splitQuantity(s string) (number, unit string) {
	s = strings.TrimSpace(s)
	split := len(s)
	for split > 0 && !isNumeric(s[split-1]) {
		split--
	}
	return s[:split], strings.TrimSpace(s[split:])
}

func isNumeric(c byte) bool { return c >= '0' && c <= '9' || c == '.' }
