// Package export_belljar_provider_skill_provider implements the generated interface with the provider of belljar.Serve.
package export_belljar_provider_skill_provider

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"my-provider/belljar"
	"my-provider/build/_bindings/exports/glue"
	generated "my-provider/build/_bindings/imports/belljar_provider_skill_provider"
)

// ListSkills lists a page of skills.
func ListSkills(cursor witTypes.Option[string]) witTypes.Result[generated.SkillPage, generated.ProviderError] {
	return glue.Result(func() (generated.SkillPage, error) {
		provider, err := skillProvider()
		if err != nil {
			return generated.SkillPage{}, err
		}
		page, err := provider.ListSkills(glue.Cursor(cursor))
		if err != nil {
			return generated.SkillPage{}, err
		}
		skills := make([]generated.SkillInfo, 0, len(page.Skills))
		for _, from := range page.Skills {
			skills = append(skills, skill(from))
		}
		return generated.SkillPage{Skills: skills, NextCursor: glue.NextCursor(page.NextCursor)}, nil
	})
}

// GetSkill returns one skill.
func GetSkill(root string) witTypes.Result[generated.SkillInfo, generated.ProviderError] {
	return glue.Result(func() (generated.SkillInfo, error) {
		provider, err := skillProvider()
		if err != nil {
			return generated.SkillInfo{}, err
		}
		found, err := provider.GetSkill(root)
		return skill(found), err
	})
}

func skill(from belljar.Skill) generated.SkillInfo {
	files := make([]string, 0, len(from.Files))
	for _, file := range from.Files {
		files = append(files, glue.String(file))
	}
	return generated.SkillInfo{Root: glue.String(from.Root), Files: files}
}

func skillProvider() (belljar.SkillProvider, error) {
	provider, ok := glue.Provider().(belljar.SkillProvider)
	if !ok {
		return nil, belljar.Failed("this provider has no methods ListSkills and GetSkill")
	}
	return provider, nil
}
