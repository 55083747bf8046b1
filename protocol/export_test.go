package protocol

// RulesOf returns the rules that a message is checked by, by the paths of its
// fields. Lists and maps must have an entry.
func RulesOf(m Message) map[string][]string {
	return rulesOf(func(c *checker) {
		c.carrier("carrier", m.Trace())
		m.check(c)
	})
}

// RulesOfLine does so for one of the lines of a blob stream.
func RulesOfLine(line interface{ check(*checker) }) map[string][]string { return rulesOf(line.check) }

func rulesOf(check func(*checker)) map[string][]string {
	rules := map[string][]string{}
	check(&checker{limits: DirectLimits(), rule: func(field, rule string) {
		for _, known := range rules[field] {
			if known == rule {
				return
			}
		}
		rules[field] = append(rules[field], rule)
	}})
	return rules
}
