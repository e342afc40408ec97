import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;

/** Prints what one release of Kafka says of itself: configuration keys, and the names of the fields of its messages. */
public class KafkaTables {
    public static void main(String[] arguments) throws Exception {
        configs("topic", "kafka.log.LogConfig$");
        configs("broker", "kafka.server.KafkaConfig$");
        fields();
    }

    static Object module(String name) throws Exception {
        return Class.forName(name).getField("MODULE$").get(null);
    }

    static void configs(String scope, String name) throws Exception {
        Object module = module(name);
        ConfigDef found = null;
        for (Field field : module.getClass().getDeclaredFields()) {
            if (ConfigDef.class.isAssignableFrom(field.getType())) {
                field.setAccessible(true);
                found = (ConfigDef) field.get(module);
            }
        }
        for (ConfigDef.ConfigKey key : found.configKeys().values()) {
            System.out.println(String.join("\t", "config", scope, key.name, key.type.name(), text(key.defaultValue),
                String.valueOf(key.validator), "topic".equals(scope) ? serverKey(module, key.name) : mode(key.name),
                "topic".equals(scope) ? "-" : synonyms(key.name)));
        }
    }

    static String text(Object value) {
        if (value == ConfigDef.NO_DEFAULT_VALUE) return "-";
        if (value == null) return "null";
        String text = value instanceof Class ? ((Class<?>) value).getName() : String.valueOf(value);
        if (value instanceof List) {
            List<String> parts = new ArrayList<>();
            for (Object one : (List<?>) value) parts.add(one instanceof Class ? ((Class<?>) one).getName() : String.valueOf(one));
            text = String.join(",", parts);
        }
        return '"' + text + '"';
    }

    static String serverKey(Object module, String name) throws Exception {
        Object option = module.getClass().getMethod("serverConfigName", String.class).invoke(module, name);
        return (Boolean) option.getClass().getMethod("isDefined").invoke(option)
            ? (String) option.getClass().getMethod("get").invoke(option) : "-";
    }

    /** Whether a key of brokers can be changed while they run, and where. */
    static String mode(String name) throws Exception {
        try {
            Object module = module("kafka.server.DynamicBrokerConfig$");
            Object modes = module.getClass().getMethod("dynamicConfigUpdateModes").invoke(module);
            Object mode = ((Map<?, ?>) modes).get(name);
            return mode == null ? "-" : (String) mode;
        } catch (NoSuchMethodException older) {
            Object module = module("kafka.server.DynamicBrokerConfig$");
            Object all = module.getClass().getMethod("AllDynamicConfigs").invoke(module);
            boolean dynamic = (Boolean) all.getClass().getMethod("apply", Object.class).invoke(all, name);
            Field per = module.getClass().getDeclaredField("PerBrokerConfigs");
            per.setAccessible(true);
            Object perBroker = per.get(module);
            boolean only = (Boolean) perBroker.getClass().getMethod("apply", Object.class).invoke(perBroker, name);
            return !dynamic ? "-" : only ? "per-broker" : "cluster-wide";
        } catch (ClassNotFoundException before) {
            return "-";
        }
    }

    static String synonyms(String name) throws Exception {
        try {
            Object module = module("kafka.server.DynamicBrokerConfig$");
            Object list = module.getClass().getMethod("brokerConfigSynonyms", String.class, boolean.class)
                .invoke(module, name, true);
            String text = (String) list.getClass().getMethod("mkString", String.class).invoke(list, ",");
            return text.equals(name) ? "-" : text;
        } catch (ClassNotFoundException before) {
            return "-";
        }
    }

    static void fields() throws Exception {
        Class<?> keys = Class.forName("org.apache.kafka.common.protocol.ApiKeys");
        for (Object key : keys.getEnumConstants()) {
            String name = (String) keys.getField("name").get(key);
            Number id = (Number) keys.getField("id").get(key);
            String[] both = {"request", "response"};
            for (String direction : both) {
                Object[] schemas;
                try {
                    schemas = (Object[]) keys.getField(direction + "Schemas").get(key);
                } catch (NoSuchFieldException older) {
                    Class<?> protocol = Class.forName("org.apache.kafka.common.protocol.Protocol");
                    Object[][] all = (Object[][]) protocol.getField(direction.equals("request") ? "REQUESTS" : "RESPONSES").get(null);
                    schemas = all[id.intValue()];
                }
                for (int version = 0; schemas != null && version < schemas.length; version++) {
                    if (schemas[version] != null) {
                        System.out.println("fields\t" + id + "\t" + name + "\t" + direction + "\t" + version + "\t" + struct(schemas[version]));
                    }
                }
            }
        }
    }

    static String struct(Object schema) throws Exception {
        List<String> parts = new ArrayList<>();
        Object[] fields = (Object[]) schema.getClass().getMethod("fields").invoke(schema);
        for (Object field : fields) {
            Object definition = field;
            try {
                definition = field.getClass().getField("def").get(field);
            } catch (NoSuchFieldException older) { }
            String name = (String) definition.getClass().getField("name").get(definition);
            Object type = definition.getClass().getField("type").get(definition);
            parts.add(name + (isStruct(type) ? "+" : "") + inner(type));
        }
        return "(" + String.join(" ", parts) + ")";
    }

    static boolean isStruct(Object type) {
        return type.getClass().getSimpleName().equals("Schema");
    }

    static String inner(Object type) throws Exception {
        if (isStruct(type)) return struct(type);
        if (type.getClass().getSimpleName().equals("TaggedFields")) return "~";
        for (String method : new String[] {"type", "arrayElementType"}) {
            try {
                Method of = type.getClass().getMethod(method);
                of.setAccessible(true);
                Object element = of.invoke(type);
                if (element instanceof java.util.Optional) element = ((java.util.Optional<?>) element).orElse(null);
                if (element != null) return inner(element);
            } catch (NoSuchMethodException none) { }
        }
        return "";
    }
}
