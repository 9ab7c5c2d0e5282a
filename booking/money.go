package booking

import (
	"fmt"
	"strconv"
	"strings"
)

// Money is an amount in a currency.
type Money struct {
	// Amount is a decimal, with at most nine digits before the point and at most
	// two after it: "250" or "250.00". It has no sign.
	Amount string `json:"amount"`
	// Currency is an ISO 4217 code, as EUR.
	Currency string `json:"currency"`
}

// Cents makes Money of hundredths. It is the inverse of [Money.Cents].
// Negative hundredths count as zero.
func Cents(n int64, currency string) Money {
	n = max(n, 0)
	return Money{Amount: fmt.Sprintf("%d.%02d", n/100, n%100), Currency: currency}
}

// Cents is the amount in hundredths of the currency's unit. The error names the
// field that is not as the contract wants it.
func (m Money) Cents() (int64, error) {
	if !isUpper(m.Currency, 3) {
		return 0, fmt.Errorf("currency: %.20q is not an ISO 4217 code: want three capital letters, as EUR", m.Currency)
	}
	whole, frac, point := strings.Cut(m.Amount, ".")
	if !isDigits(whole, 1, 9) || (point && !isDigits(frac, 1, 2)) {
		return 0, fmt.Errorf("amount: %.20q is not a decimal: want at most nine digits, and at most two after the point, as \"250.00\"", m.Amount)
	}
	for len(frac) < 2 {
		frac += "0"
	}
	return strconv.ParseInt(whole+frac, 10, 64)
}

func isDigits(s string, least, most int) bool {
	if len(s) < least || len(s) > most {
		return false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

func isUpper(s string, n int) bool {
	if len(s) != n {
		return false
	}
	for _, c := range []byte(s) {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return true
}
