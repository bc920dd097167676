/*
 * Private to the tables: macros that let a row stand on one line. A table defines HF_ROW_STATE, HF_ROW_EVENT,
 * HF_ROW_GUARD and HF_ROW_EFFECT (enumerator prefixes pasted to short names) before it uses ROW().
 *
 *     ROW(JOURNALING, ACTION_DURABLE, NO_VIOLATION, EXECUTING, SEND_EXECUTE, ARM_TIMER),
 *
 * A row without effects says NONE.
 */
#ifndef HF_STATEMACHINES_TABLE_H
#define HF_STATEMACHINES_TABLE_H

#define HF_ROW_EFFECTS_1(a)                HF_ROW_EFFECT(a)
#define HF_ROW_EFFECTS_2(a, b)             HF_ROW_EFFECT(a), HF_ROW_EFFECT(b)
#define HF_ROW_EFFECTS_3(a, b, c)          HF_ROW_EFFECTS_2(a, b), HF_ROW_EFFECT(c)
#define HF_ROW_EFFECTS_4(a, b, c, d)       HF_ROW_EFFECTS_3(a, b, c), HF_ROW_EFFECT(d)
#define HF_ROW_EFFECTS_5(a, b, c, d, e)    HF_ROW_EFFECTS_4(a, b, c, d), HF_ROW_EFFECT(e)
#define HF_ROW_EFFECTS_6(a, b, c, d, e, f) HF_ROW_EFFECTS_5(a, b, c, d, e), HF_ROW_EFFECT(f)

#define HF_ROW_PICK(a, b, c, d, e, f, chosen, ...) chosen
#define HF_ROW_EFFECTS(...)                                                                                            \
    HF_ROW_PICK(__VA_ARGS__, HF_ROW_EFFECTS_6, HF_ROW_EFFECTS_5, HF_ROW_EFFECTS_4, HF_ROW_EFFECTS_3, HF_ROW_EFFECTS_2, \
                HF_ROW_EFFECTS_1, unused)                                                                              \
    (__VA_ARGS__)

#define ROW(state, event, guard, next, ...)                                                                            \
    {                                                                                                                  \
        HF_ROW_STATE(state), HF_ROW_EVENT(event), HF_ROW_GUARD(guard), HF_ROW_STATE(next),                             \
        {                                                                                                              \
            HF_ROW_EFFECTS(__VA_ARGS__)                                                                                \
        }                                                                                                              \
    }

#endif
