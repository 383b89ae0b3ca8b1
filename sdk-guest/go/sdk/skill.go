package belljar

// SkillProvider is a provider with skills: directories with a SKILL.md that tells a model how to do something. It needs
// the interface skills. Read serves the files.
type SkillProvider interface {
	Provider
	// ListSkills lists skills, a page at a time, as List does.
	ListSkills(cursor *string) (SkillPage, error)
	// GetSkill is the skill in the directory root, whether it is listed or not.
	GetSkill(root string) (Skill, error)
}

// Skill is a skill.
type Skill struct {
	Root  string   // the directory, without a slash at its end; its last segment is the name in SKILL.md
	Files []string // the references of all files below the directory, SKILL.md included
}

// SkillPage is one page of the list of skills.
type SkillPage struct {
	Skills     []Skill
	NextCursor *string // nil on the last page
}
