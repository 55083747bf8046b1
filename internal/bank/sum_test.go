package bank

import (
	"errors"
	"fmt"
)

// sides are what a read of all accounts finds of one payment.
type sides struct {
	out, in         move
	outCount, count int
}

// checkSum returns what is wrong with the states of all accounts at one time: the sum of their balances and of the
// money that is on its way is what it was at first, no side of a payment is there twice, none has come that has not
// left, and both sides of a turn are there or neither.
func checkSum(all []*account) error {
	payments := map[string]*sides{}
	sum := 0
	for n, a := range all {
		change := 0
		for _, m := range a.Moves {
			change += m.Amount
			s := payments[m.Name]
			if s == nil {
				s = &sides{}
				payments[m.Name] = s
			}
			if m.Amount < 0 {
				s.out, s.outCount = m, s.outCount+1
			} else {
				s.in, s.count = m, s.count+1
			}
		}
		if change != a.Change {
			return fmt.Errorf("account %d has changed by %d, and its moves by %d", n, a.Change, change)
		}
		if a.balance() < 0 {
			return fmt.Errorf("account %d has paid what it had not: %d", n, a.balance())
		}
		sum += a.balance()
	}
	var errs []error
	for name, s := range payments {
		onWay, err := s.onWay()
		if err != nil {
			errs = append(errs, fmt.Errorf("payment %s: %w", name, err))
		}
		sum += onWay
	}
	if sum != len(all)*opening {
		errs = append(errs, fmt.Errorf("the sum is %d, and was %d", sum, len(all)*opening))
	}
	return errors.Join(errs...)
}

// onWay returns how much of a payment has left one account and has not come to the other.
func (s *sides) onWay() (int, error) {
	switch {
	case s.outCount > 1 || s.count > 1:
		return 0, fmt.Errorf("it has left %d times and has come %d times", s.outCount, s.count)
	case s.outCount == 0:
		return 0, errors.New("it has come, and has never left")
	case s.count == 1 && s.in.Amount != -s.out.Amount:
		return 0, fmt.Errorf("%d have left, and %d have come", -s.out.Amount, s.in.Amount)
	case s.count == 1:
		return 0, nil
	case !s.out.Sent:
		return 0, errors.New("one side of a turn is there, and the other is not")
	}
	return -s.out.Amount, nil
}
